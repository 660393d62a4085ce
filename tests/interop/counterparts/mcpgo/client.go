package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const patience = 15 * time.Second

type plan struct {
	Transport string
	Revision  string
	Target    json.RawMessage
	Steps     [][]any
}

type player struct {
	plan     plan
	client   *client.Client
	lock     sync.Mutex
	news     *sync.Cond
	heard    map[string]bool
	progress map[any][]float64
	begun    func()
	calls    int
}

func (p *player) hear(note mcp.JSONRPCNotification) {
	said := note.Params.AdditionalFields
	p.lock.Lock()
	defer p.lock.Unlock()
	switch note.Method {
	case "notifications/message":
		p.heard[fmt.Sprint("log ", said["data"])] = true
	case "notifications/tools/list_changed":
		p.heard["tools"] = true
	case "notifications/resources/updated":
		p.heard[fmt.Sprint("updated ", said["uri"])] = true
	case "notifications/progress":
		token := fmt.Sprint(said["progressToken"])
		p.progress[token] = append(p.progress[token], said["progress"].(float64))
		if p.begun != nil {
			p.begun()
		}
	}
	p.news.Broadcast()
}

// Waits under the lock until something is so.
func (p *player) await(so func() bool) error {
	timer := time.AfterFunc(patience, func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.news.Broadcast()
	})
	defer timer.Stop()
	deadline := time.Now().Add(patience)
	p.lock.Lock()
	defer p.lock.Unlock()
	for !so() {
		if time.Now().After(deadline) {
			return errors.New("too late")
		}
		p.news.Wait()
	}
	return nil
}

func (p *player) changed(what string) (any, error) {
	return what, p.await(func() bool { return p.heard[what] })
}

func (p *player) logs(count int) (any, error) {
	said := []string{}
	err := p.await(func() bool {
		said = said[:0]
		for what := range p.heard {
			if words, ok := strings.CutPrefix(what, "log "); ok {
				said = append(said, words)
			}
		}
		return len(said) >= count
	})
	slices.Sort(said)
	return said, err
}

func (p *player) call(ctx context.Context, name string, arguments any) (any, error) {
	p.calls++
	token := fmt.Sprint("call ", p.calls)
	result, err := p.client.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{
		Name: name, Arguments: arguments, Meta: &mcp.Meta{ProgressToken: token},
	}})
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, block := range result.Content {
		words = append(words, mcp.GetTextFromContent(block))
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	return map[string]any{
		"text":     strings.Join(words, "\n"),
		"error":    result.IsError,
		"progress": append([]float64{}, p.progress[token]...),
	}, nil
}

func (p *player) cancel(ctx context.Context, name string, arguments any) (any, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.lock.Lock()
	p.begun = stop
	p.lock.Unlock()
	result, err := p.call(ctx, name, arguments)
	p.lock.Lock()
	p.begun = nil
	p.lock.Unlock()
	if err != nil {
		return "cancelled", nil
	}
	return result, nil
}

func (p *player) listen(uris []any) (any, error) {
	names := []string{}
	for _, uri := range uris {
		names = append(names, uri.(string))
	}
	if mcp.IsModernProtocol(p.plan.Revision) {
		wanted := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: names}
		_, err := p.client.ListenAsync(context.Background(), wanted, nil)
		time.Sleep(500 * time.Millisecond) // nothing tells that the server has agreed
		return true, err
	}
	for _, uri := range names {
		request := mcp.SubscribeRequest{Params: mcp.SubscribeParams{URI: uri}}
		if err := p.client.Subscribe(context.Background(), request); err != nil {
			return nil, err
		}
	}
	return true, nil
}

func names[T any](items []T, err error, name func(T) string) (any, error) {
	found := []string{}
	for _, item := range items {
		found = append(found, name(item))
	}
	slices.Sort(found)
	return found, err
}

func (p *player) list(ctx context.Context, verb string) (any, error) {
	switch verb {
	case "tools":
		found, err := p.client.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			return nil, err
		}
		return names(found.Tools, nil, func(t mcp.Tool) string { return t.Name })
	case "resources":
		found, err := p.client.ListResources(ctx, mcp.ListResourcesRequest{})
		if err != nil {
			return nil, err
		}
		return names(found.Resources, nil, func(r mcp.Resource) string { return r.URI })
	case "prompts":
		found, err := p.client.ListPrompts(ctx, mcp.ListPromptsRequest{})
		if err != nil {
			return nil, err
		}
		return names(found.Prompts, nil, func(p mcp.Prompt) string { return p.Name })
	}
	found, err := p.client.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
	if err != nil {
		return nil, err
	}
	return names(found.ResourceTemplates, nil, func(t mcp.ResourceTemplate) string { return t.URITemplate.Raw() })
}

func (p *player) text(ctx context.Context, verb string, args []any) (any, error) {
	switch verb {
	case "read":
		request := mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: args[0].(string)}}
		found, err := p.client.ReadResource(ctx, request)
		if err != nil {
			return nil, err
		}
		contents, _ := mcp.AsTextResourceContents(found.Contents[0])
		return contents.Text, nil
	case "prompt":
		filled := map[string]string{}
		for name, value := range args[1].(map[string]any) {
			filled[name] = value.(string)
		}
		request := mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: args[0].(string), Arguments: filled}}
		found, err := p.client.GetPrompt(ctx, request)
		if err != nil {
			return nil, err
		}
		return mcp.GetTextFromContent(found.Messages[0].Content), nil
	case "complete":
		found, err := p.client.Complete(ctx, mcp.CompleteRequest{Params: mcp.CompleteParams{
			Ref:      mcp.PromptReference{Type: "ref/prompt", Name: args[0].(string)},
			Argument: mcp.CompleteArgument{Name: args[1].(string), Value: args[2].(string)},
		}})
		if err != nil {
			return nil, err
		}
		slices.Sort(found.Completion.Values)
		return found.Completion.Values, nil
	}
	return nil, fmt.Errorf("no such verb: %s", verb)
}

func (p *player) step(verb string, args []any) (any, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	switch verb {
	case "tools", "resources", "templates", "prompts":
		return p.list(ctx, verb)
	case "call":
		return p.call(ctx, args[0].(string), args[1])
	case "cancel":
		return p.cancel(ctx, args[0].(string), args[1])
	case "logs":
		return p.logs(int(args[0].(float64)))
	case "changed":
		return p.changed(args[0].(string))
	case "hear":
		return p.listen(args[0].([]any))
	case "ping":
		return true, p.client.Ping(ctx)
	}
	return p.text(ctx, verb, args)
}

// The library turns codes into errors of its own; these are the codes again.
func outcome(result any, err error) any {
	switch {
	case errors.Is(err, mcp.ErrInvalidParams):
		return map[string]any{"code": mcp.INVALID_PARAMS}
	case errors.Is(err, mcp.ErrResourceNotFound):
		return map[string]any{"code": mcp.RESOURCE_NOT_FOUND}
	case err != nil:
		return map[string]any{"raised": err.Error()}
	}
	return result
}

type answers struct{}

func (answers) Elicit(_ context.Context, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if request.Params.Mode == mcp.ElicitationModeURL {
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
			Action: mcp.ElicitationResponseActionAccept,
		}}, nil
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"row": 7},
	}}, nil
}

func (answers) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	thought := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("A thought.")}
	return &mcp.CreateMessageResult{SamplingMessage: thought, Model: "go"}, nil
}

func (answers) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///work"}}}, nil
}

func (p *player) transport() (transport.Interface, error) {
	var url string
	var command []string
	if json.Unmarshal(p.plan.Target, &url) != nil {
		json.Unmarshal(p.plan.Target, &command)
		return transport.NewStdio(command[0], nil, command[1:]...), nil
	}
	if p.plan.Transport == "sse" {
		return transport.NewSSE(url)
	}
	if mcp.IsModernProtocol(p.plan.Revision) {
		return transport.NewStreamableHTTP(url)
	}
	return transport.NewStreamableHTTP(url, transport.WithContinuousListening())
}

func (p *player) connect(ctx context.Context) error {
	way, err := p.transport()
	if err != nil {
		return err
	}
	p.client = client.NewClient(way,
		client.WithProtocolVersion(p.plan.Revision),
		client.WithElicitationHandler(answers{}),
		client.WithSamplingHandler(answers{}),
		client.WithRootsHandler(answers{}),
	)
	if err := p.client.Start(ctx); err != nil {
		return err
	}
	p.client.OnNotification(p.hear)
	hello := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: p.plan.Revision, ClientInfo: mcp.Implementation{Name: "mcp-go", Version: "1"},
	}}
	if p.plan.Revision >= "2025-11-25" {
		both := &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}
		hello.Params.Capabilities = mcp.ClientCapabilities{Elicitation: both}
	}
	if _, err := p.client.Initialize(ctx, hello); err != nil {
		return err
	}
	return p.client.SetLevel(ctx, mcp.SetLevelRequest{Params: mcp.SetLevelParams{Level: mcp.LoggingLevelInfo}})
}

func visit(words string) {
	p := &player{heard: map[string]bool{}, progress: map[any][]float64{}}
	p.news = sync.NewCond(&p.lock)
	if err := json.Unmarshal([]byte(words), &p.plan); err != nil {
		log.Fatal(err)
	}
	if err := p.connect(context.Background()); err != nil {
		log.Fatal(err)
	}
	outcomes := []any{}
	for _, step := range p.plan.Steps {
		outcomes = append(outcomes, outcome(p.step(step[0].(string), step[1:])))
	}
	said := map[string]any{"revision": p.client.ProtocolVersion(), "outcomes": outcomes}
	json.NewEncoder(os.Stdout).Encode(said)
	p.client.Close()
}
