package main

import (
	"context"
	"errors"
	"log"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type run = func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error)

// The keys of the slow calls that were cancelled.
var stopped sync.Map

func add(s *server.MCPServer, name string, call run, parameters ...string) {
	options := []mcp.ToolOption{mcp.WithDescription("The tool " + name + ".")}
	for _, parameter := range parameters {
		options = append(options, mcp.WithString(parameter, mcp.Required()))
	}
	s.AddTool(mcp.NewTool(name, options...), call)
}

func say(words string) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(words), nil
}

func report(ctx context.Context, s *server.MCPServer, req mcp.CallToolRequest, done float64) {
	if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
		s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": meta.ProgressToken, "progress": done,
		})
	}
}

func offerPlain(s *server.MCPServer) {
	add(s, "echo", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(req.GetString("text", ""))
	}, "text")
	add(s, "fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("it broke"), nil
	})
	add(s, "steps", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, done := range []float64{1, 2, 3} {
			report(ctx, s, req, done)
			time.Sleep(20 * time.Millisecond)
		}
		return say("done")
	})
	add(s, "chat", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelDebug, "", "quiet"))
		s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelWarning, "", "loud"))
		return say("said")
	})
}

// The library turns these questions into requests for clients of the older revisions.
func offerAsking(s *server.MCPServer) {
	add(s, "ask", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "seat")
		if answer == nil {
			form := map[string]any{
				"type":       "object",
				"properties": map[string]any{"row": map[string]any{"type": "integer"}},
				"required":   []string{"row"},
			}
			question := mcp.ElicitationParams{Message: "Which seat?", RequestedSchema: form}
			return server.NewInputRequestBuilder("").Elicit("seat", question).ToolResult(), nil
		}
		if content, ok := answer.Content.(map[string]any); ok && content["row"] == 7.0 {
			return say("row 7")
		}
		return nil, errors.New("another row")
	})
	add(s, "think", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.SamplingResponse(req.Params.InputResponses, "thought")
		if answer == nil {
			said := mcp.SamplingMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(req.GetString("topic", ""))}
			question := mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{said}, MaxTokens: 10}
			return server.NewInputRequestBuilder("").Sample("thought", question).ToolResult(), nil
		}
		return say(mcp.GetTextFromContent(answer.Content))
	}, "topic")
	add(s, "where", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.RootsResponse(req.Params.InputResponses, "roots")
		if answer == nil {
			return server.NewInputRequestBuilder("").Roots("roots").ToolResult(), nil
		}
		uris := []string{}
		for _, root := range answer.Roots {
			uris = append(uris, root.URI)
		}
		return say(strings.Join(uris, ","))
	})
}

func offerLasting(s *server.MCPServer) {
	add(s, "slow", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		report(ctx, s, req, 1)
		select {
		case <-ctx.Done():
			stopped.Store(req.GetString("key", ""), true)
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return say("too late")
		}
	}, "key")
	add(s, "stopped", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 50 {
			if _, was := stopped.Load(req.GetString("key", "")); was {
				return say("yes")
			}
			time.Sleep(100 * time.Millisecond)
		}
		return say("no")
	}, "key")
	add(s, "drop", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say("kept")
	})
}

func offerChanging(s *server.MCPServer) {
	grown := false
	add(s, "grow", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if grown = !grown; grown {
			add(s, "extra", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return say("new")
			})
		} else {
			s.DeleteTools("extra")
		}
		return say("changed")
	})
	add(s, "touch", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "note://one"})
		return say("touched")
	})
}

func read(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	words := "Note " + strings.TrimPrefix(req.Params.URI, "note://") + "."
	if req.Params.URI == "note://one" {
		words = "Remember the milk."
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, Text: words}}, nil
}

func offerTexts(s *server.MCPServer) {
	s.AddResource(mcp.NewResource("note://one", "one"), read)
	s.AddResourceTemplate(mcp.NewResourceTemplate("note://{name}", "note"), read)
	hello := mcp.NewPrompt("hello", mcp.WithArgument("name", mcp.RequiredArgument()))
	s.AddPrompt(hello, func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		words := mcp.NewTextContent("Say hello to " + req.Params.Arguments["name"] + ".")
		messages := []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, words)}
		return mcp.NewGetPromptResult("A greeting.", messages), nil
	})
}

type greeted struct{}

func (greeted) CompletePromptArgument(
	_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext,
) (*mcp.Completion, error) {
	found := &mcp.Completion{Values: []string{}}
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, argument.Value) {
			found.Values = append(found.Values, name)
		}
	}
	return found, nil
}

func serve(where []string) {
	s := server.NewMCPServer("counterpart", "1",
		server.WithPaginationLimit(5),
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(true, true),
		server.WithPromptCapabilities(true),
		server.WithLogging(),
		server.WithElicitation(),
		server.WithRoots(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(greeted{}),
	)
	s.EnableSampling()
	offerPlain(s)
	offerAsking(s)
	offerLasting(s)
	offerChanging(s)
	offerTexts(s)
	switch where[0] {
	case "stdio":
		log.Fatal(server.ServeStdio(s))
	case "sse":
		log.Fatal(server.NewSSEServer(s).Start("127.0.0.1:" + where[1]))
	default:
		store := server.WithEventStore(server.NewInMemoryEventStore())
		log.Fatal(server.NewStreamableHTTPServer(s, server.WithStateful(true), store).Start("127.0.0.1:" + where[1]))
	}
}
