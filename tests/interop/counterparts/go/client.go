package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const patience = 15 * time.Second

type plan struct {
	Transport string          `json:"transport"`
	Target    json.RawMessage `json:"target"`
	Revision  string          `json:"revision"`
	Steps     [][]any         `json:"steps"`
}

// player has what was heard so far, and the verbs of the script.
type player struct {
	plan     plan
	session  *mcp.ClientSession
	deaf     bool
	lock     sync.Mutex
	news     *sync.Cond
	heard    map[string]bool
	progress map[any][]float64
	begun    func()
}

func (p *player) hears(what string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.heard[what] = true
	p.news.Broadcast()
}

// until waits for something to be heard, or for the end of patience.
func (p *player) until(heard func() bool) error {
	late := false
	timer := time.AfterFunc(patience, func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		late = true
		p.news.Broadcast()
	})
	defer timer.Stop()
	p.lock.Lock()
	defer p.lock.Unlock()
	for !heard() {
		if late {
			return errors.New("too late")
		}
		p.news.Wait()
	}
	return nil
}

func (p *player) logs(count int) (any, error) {
	found := []string{}
	err := p.until(func() bool {
		found = found[:0]
		for what := range p.heard {
			if words, ok := strings.CutPrefix(what, "log "); ok {
				found = append(found, words)
			}
		}
		return len(found) >= count
	})
	slices.Sort(found)
	return found, err
}

func (p *player) changed(what string) (any, error) {
	if p.deaf {
		return nil, errors.New("nothing can be heard: the step before failed")
	}
	return what, p.until(func() bool { return p.heard[what] })
}

func (p *player) call(ctx context.Context, name string, arguments any) (any, error) {
	token := fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	if p.plan.Revision >= "2026" {
		params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": "info"}
	} else {
		params.Meta = mcp.Meta{}
	}
	params.SetProgressToken(token)
	result, err := p.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			words = append(words, text.Text)
		}
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	reports := append([]float64{}, p.progress[token]...)
	return map[string]any{"text": strings.Join(words, "\n"), "error": result.IsError, "progress": reports}, nil
}

func (p *player) cancel(ctx context.Context, name string, arguments any) (any, error) {
	ctx, stop := context.WithCancel(ctx)
	p.begun = stop
	defer func() { p.begun = nil }()
	result, err := p.call(ctx, name, arguments)
	if errors.Is(err, context.Canceled) {
		return "cancelled", nil
	}
	return result, err
}

func (p *player) hear(ctx context.Context, uris []any) (any, error) {
	agreed := []string{"agreed tools"} // for lists it subscribes as it connects
	for _, uri := range uris {
		if err := p.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri.(string)}); err != nil {
			return nil, err
		}
		agreed = append(agreed, "agreed "+uri.(string))
	}
	if p.plan.Revision < "2026" {
		return true, nil
	}
	// here both return before the server has agreed
	return true, p.until(func() bool {
		return !slices.ContainsFunc(agreed, func(what string) bool { return !p.heard[what] })
	})
}

// hearsAgreement tells of subscriptions that the server acknowledges, for which the library has no handler.
func (p *player) hearsAgreement(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if params, ok := request.GetParams().(*mcp.SubscriptionsAcknowledgedParams); ok {
			if params.Notifications.ToolsListChanged {
				p.hears("agreed tools")
			}
			for _, uri := range params.Notifications.ResourceSubscriptions {
				p.hears("agreed " + uri)
			}
		}
		return next(ctx, method, request)
	}
}

func (p *player) names(ctx context.Context, verb string) (any, error) {
	switch verb {
	case "tools":
		return collected(p.session.Tools(ctx, nil), func(t *mcp.Tool) string { return t.Name })
	case "resources":
		return collected(p.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
	case "prompts":
		return collected(p.session.Prompts(ctx, nil), func(p *mcp.Prompt) string { return p.Name })
	}
	templates := p.session.ResourceTemplates(ctx, nil)
	return collected(templates, func(t *mcp.ResourceTemplate) string { return t.URITemplate })
}

func collected[T any](items iter.Seq2[T, error], name func(T) string) (any, error) {
	found := []string{}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		found = append(found, name(item))
	}
	slices.Sort(found)
	return found, nil
}

func (p *player) texts(ctx context.Context, verb string, args []any) (any, error) {
	switch verb {
	case "read":
		result, err := p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: args[0].(string)})
		if err != nil {
			return nil, err
		}
		return result.Contents[0].Text, nil
	case "prompt":
		filled := map[string]string{}
		for name, value := range args[1].(map[string]any) {
			filled[name] = value.(string)
		}
		params := &mcp.GetPromptParams{Name: args[0].(string), Arguments: filled}
		result, err := p.session.GetPrompt(ctx, params)
		if err != nil {
			return nil, err
		}
		return result.Messages[0].Content.(*mcp.TextContent).Text, nil
	case "complete":
		result, err := p.session.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: args[0].(string)},
			Argument: mcp.CompleteParamsArgument{Name: args[1].(string), Value: args[2].(string)},
		})
		if err != nil {
			return nil, err
		}
		slices.Sort(result.Completion.Values)
		return result.Completion.Values, nil
	}
	return nil, fmt.Errorf("no such verb: %s", verb)
}

func (p *player) step(verb string, args []any) (any, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	switch verb {
	case "tools", "resources", "templates", "prompts":
		return p.names(ctx, verb)
	case "call":
		return p.call(ctx, args[0].(string), args[1])
	case "cancel":
		return p.cancel(ctx, args[0].(string), args[1])
	case "logs":
		return p.logs(int(args[0].(float64)))
	case "changed":
		return p.changed(args[0].(string))
	case "hear":
		result, err := p.hear(ctx, args[0].([]any))
		p.deaf = err != nil
		return result, err
	case "ping":
		return true, p.session.Ping(ctx, nil)
	}
	return p.texts(ctx, verb, args)
}

func outcome(result any, err error) any {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return map[string]any{"code": wire.Code}
	}
	if err != nil {
		return map[string]any{"raised": err.Error()}
	}
	return result
}

func (p *player) client() *mcp.Client {
	options := &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if req.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"row": 7}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			words := &mcp.TextContent{Text: "A thought."}
			return &mcp.CreateMessageResult{Role: "assistant", Model: "go", Content: words}, nil
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			p.hears(fmt.Sprint("log ", req.Params.Data))
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { p.hears("tools") },
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			p.hears("updated " + req.Params.URI)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			p.lock.Lock()
			defer p.lock.Unlock()
			token := req.Params.ProgressToken
			p.progress[token] = append(p.progress[token], req.Params.Progress)
			if p.begun != nil {
				p.begun()
			}
		},
	}
	if p.plan.Revision >= "2025-11-25" {
		options.Capabilities = &mcp.ClientCapabilities{
			RootsV2: &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{
				Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
			},
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, options)
	client.AddReceivingMiddleware(p.hearsAgreement)
	client.AddRoots(&mcp.Root{URI: "file:///work"})
	return client
}

func (p *player) transport() mcp.Transport {
	var url string
	var command []string
	if json.Unmarshal(p.plan.Target, &url) != nil {
		json.Unmarshal(p.plan.Target, &command)
		return &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}
	}
	if p.plan.Transport == "sse" {
		return &mcp.SSEClientTransport{Endpoint: url}
	}
	return &mcp.StreamableClientTransport{Endpoint: url}
}

func visit(words string) {
	p := &player{heard: map[string]bool{}, progress: map[any][]float64{}}
	p.news = sync.NewCond(&p.lock)
	if err := json.Unmarshal([]byte(words), &p.plan); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	pinned := &mcp.ClientSessionOptions{ProtocolVersion: p.plan.Revision}
	session, err := p.client().Connect(ctx, p.transport(), pinned)
	if err != nil {
		log.Fatal(err)
	}
	p.session = session
	if p.plan.Revision < "2026" {
		if err := session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			log.Fatal(err)
		}
	}
	outcomes := []any{}
	for _, step := range p.plan.Steps {
		outcomes = append(outcomes, outcome(p.step(step[0].(string), step[1:])))
	}
	revision := session.InitializeResult().ProtocolVersion
	json.NewEncoder(os.Stdout).Encode(map[string]any{"revision": revision, "outcomes": outcomes})
	session.Close()
}
