package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type nothing struct{}

type keyed struct {
	Key string `json:"key"`
}

type call[In any] func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, error)

// Which slow calls were cancelled.
var (
	stopping sync.Mutex
	stopped  = map[string]bool{}
)

func text(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

func tool[In any](server *mcp.Server, name string, run call[In]) {
	about := &mcp.Tool{Name: name, Description: "The tool " + name + "."}
	mcp.AddTool(server, about, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := run(ctx, req, in)
		return result, nil, err
	})
}

func modern(req *mcp.CallToolRequest) bool {
	return req.ProtocolVersion() >= "2026"
}

// What a question came to, or the result that carries it to the client.
func asked(req *mcp.CallToolRequest, key string, question mcp.InputRequest) (mcp.InputResponse, *mcp.CallToolResult) {
	if answer, ok := req.Params.InputResponses[key]; ok {
		return answer, nil
	}
	return nil, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: question}}
}

func progress(ctx context.Context, req *mcp.CallToolRequest, done float64) {
	if token := req.Params.GetProgressToken(); token != nil {
		report := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done}
		req.Session.NotifyProgress(ctx, report)
	}
}

func offerPlain(server *mcp.Server) {
	tool(server, "echo", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, error) {
		return text(in.Text), nil
	})
	tool(server, "fail", func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, error) {
		return nil, errors.New("it broke")
	})
	tool(server, "steps", func(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		for _, done := range []float64{1, 2, 3} {
			progress(ctx, req, done)
			time.Sleep(20 * time.Millisecond)
		}
		return text("done"), nil
	})
	tool(server, "chat", func(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "debug", Data: "quiet"})
		req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "loud"})
		return text("said"), nil
	})
}

func offerAsking(server *mcp.Server) {
	tool(server, "ask", func(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		row := map[string]*jsonschema.Schema{"row": {Type: "integer"}}
		form := &jsonschema.Schema{Type: "object", Properties: row, Required: []string{"row"}}
		question := &mcp.ElicitParams{Message: "Which seat?", RequestedSchema: form}
		var answer *mcp.ElicitResult
		if modern(req) {
			came, result := asked(req, "seat", question)
			if result != nil {
				return result, nil
			}
			answer = came.(*mcp.ElicitResult)
		} else {
			came, err := req.Session.Elicit(ctx, question)
			if err != nil {
				return nil, err
			}
			answer = came
		}
		if answer.Content["row"] == 7.0 {
			return text("row 7"), nil
		}
		return nil, errors.New("another row")
	})
	tool(server, "think", func(ctx context.Context, req *mcp.CallToolRequest, in struct {
		Topic string `json:"topic"`
	}) (*mcp.CallToolResult, error) {
		said := []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Topic}}}
		question := &mcp.CreateMessageParams{Messages: said, MaxTokens: 10}
		if !modern(req) {
			answer, err := req.Session.CreateMessage(ctx, question)
			if err != nil {
				return nil, err
			}
			return text(answer.Content.(*mcp.TextContent).Text), nil
		}
		came, result := asked(req, "thought", question)
		if result != nil {
			return result, nil
		}
		return text(came.(*mcp.CreateMessageWithToolsResult).Content[0].(*mcp.TextContent).Text), nil
	})
	tool(server, "where", func(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		var answer *mcp.ListRootsResult
		if modern(req) {
			came, result := asked(req, "roots", &mcp.ListRootsParams{})
			if result != nil {
				return result, nil
			}
			answer = came.(*mcp.ListRootsResult)
		} else {
			came, err := req.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, err
			}
			answer = came
		}
		uris := []string{}
		for _, root := range answer.Roots {
			uris = append(uris, root.URI)
		}
		return text(strings.Join(uris, ",")), nil
	})
}

func offerLasting(server *mcp.Server) {
	tool(server, "slow", func(ctx context.Context, req *mcp.CallToolRequest, in keyed) (*mcp.CallToolResult, error) {
		progress(ctx, req, 1)
		select {
		case <-ctx.Done():
			stopping.Lock()
			stopped[in.Key] = true
			stopping.Unlock()
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return text("too late"), nil
		}
	})
	tool(server, "stopped", func(_ context.Context, _ *mcp.CallToolRequest, in keyed) (*mcp.CallToolResult, error) {
		for range 50 {
			stopping.Lock()
			was := stopped[in.Key]
			stopping.Unlock()
			if was {
				return text("yes"), nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		return text("no"), nil
	})
	tool(server, "drop", func(_ context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		if req.Extra == nil || req.Extra.CloseSSEStream == nil {
			return text("kept"), nil
		}
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 100 * time.Millisecond})
		time.Sleep(50 * time.Millisecond)
		return text("resumed"), nil
	})
}

func offerChanging(server *mcp.Server) {
	grown := false
	tool(server, "grow", func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, error) {
		if grown = !grown; grown {
			tool(server, "extra", func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, error) {
				return text("new"), nil
			})
		} else {
			server.RemoveTools("extra")
		}
		return text("changed"), nil
	})
	tool(server, "touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		return text("touched"), server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "note://one"})
	})
}

func offerTexts(server *mcp.Server) {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		words := "Note " + strings.TrimPrefix(uri, "note://") + "."
		if uri == "note://one" {
			words = "Remember the milk."
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: words}}}, nil
	}
	server.AddResource(&mcp.Resource{URI: "note://one", Name: "one"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note://{name}", Name: "note"}, read)
	hello := &mcp.Prompt{
		Name:        "hello",
		Description: "Say hello.",
		Arguments:   []*mcp.PromptArgument{{Name: "name", Required: true}},
	}
	server.AddPrompt(hello, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		words := "Say hello to " + req.Params.Arguments["name"] + "."
		message := &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: words}}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message}}, nil
	})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, req.Params.Argument.Value) {
			values = append(values, name)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values}}, nil
}

func serve(where []string) {
	server := mcp.NewServer(&mcp.Implementation{Name: "counterpart", Version: "1"}, &mcp.ServerOptions{
		PageSize:           5,
		CompletionHandler:  complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	offerPlain(server)
	offerAsking(server)
	offerLasting(server)
	offerChanging(server)
	offerTexts(server)
	one := func(*http.Request) *mcp.Server { return server }
	switch where[0] {
	case "stdio":
		server.Run(context.Background(), &mcp.StdioTransport{})
	case "sse":
		log.Fatal(http.ListenAndServe("127.0.0.1:"+where[1], mcp.NewSSEHandler(one, nil)))
	default:
		options := &mcp.StreamableHTTPOptions{
			EventStore:                   mcp.NewMemoryEventStore(nil),
			PropagateRequestCancellation: true,
		}
		sessions := mcp.NewStreamableHTTPHandler(one, options)
		stateless := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true,
		})
		log.Fatal(http.ListenAndServe("127.0.0.1:"+where[1], http.HandlerFunc(
			// The library serves 2026-07-28 without sessions only, and the others' sessions elsewhere.
			func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("MCP-Protocol-Version") >= "2026" {
					stateless.ServeHTTP(w, r)
				} else {
					sessions.ServeHTTP(w, r)
				}
			})))
	}
}
