import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.json.TypeRef;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.ClientCapabilities;
import io.modelcontextprotocol.spec.McpSchema.CompleteRequest;
import io.modelcontextprotocol.spec.McpSchema.CreateMessageResult;
import io.modelcontextprotocol.spec.McpSchema.ElicitResult;
import io.modelcontextprotocol.spec.McpSchema.GetPromptRequest;
import io.modelcontextprotocol.spec.McpSchema.LoggingLevel;
import io.modelcontextprotocol.spec.McpSchema.PromptReference;
import io.modelcontextprotocol.spec.McpSchema.ReadResourceRequest;
import io.modelcontextprotocol.spec.McpSchema.Role;
import io.modelcontextprotocol.spec.McpSchema.Root;
import io.modelcontextprotocol.spec.McpSchema.SubscribeRequest;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.TextResourceContents;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.stream.Stream;
import reactor.core.publisher.Mono;

/** The client, playing the script of steps.py. */
final class Visitor {
  private static final Duration PATIENCE = Duration.ofSeconds(15);

  private final Map<String, Object> plan;
  private final String revision;
  private final List<String> heard = new ArrayList<>();
  private final Map<Object, List<Double>> progress = new ConcurrentHashMap<>();
  private McpAsyncClient client;
  private volatile CountDownLatch begun = new CountDownLatch(1);
  private int calls;

  private Visitor(Map<String, Object> plan) {
    this.plan = plan;
    this.revision = (String) plan.get("revision");
  }

  private Mono<Void> hears(String what) {
    synchronized (heard) {
      heard.add(what);
      heard.notifyAll();
    }
    return Mono.empty();
  }

  private <T> T await(Supplier<T> found) throws Exception {
    long end = System.nanoTime() + PATIENCE.toNanos();
    synchronized (heard) {
      while (found.get() == null) {
        long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        if (left <= 0) {
          throw new TimeoutException("too late");
        }
        heard.wait(left);
      }
      return found.get();
    }
  }

  private List<String> logged(int count) {
    List<String> logs = heard.stream()
        .filter(what -> what.startsWith("log ")).map(what -> what.substring(4)).distinct().sorted().toList();
    return logs.size() >= count ? logs : null;
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> mapping(Object value) {
    return (Map<String, Object>) value;
  }

  private CallToolRequest request(List<Object> step) {
    return CallToolRequest.builder((String) step.get(1))
        .arguments(mapping(step.get(2))).progressToken("call " + ++calls).build();
  }

  private Object call(List<Object> step) {
    CallToolRequest request = request(step);
    var result = client.callTool(request).block(PATIENCE);
    String words = String.join("\n", result.content().stream()
        .filter(TextContent.class::isInstance).map(block -> ((TextContent) block).text()).toList());
    return Map.of(
        "text", words,
        "error", Boolean.TRUE.equals(result.isError()),
        "progress", progress.getOrDefault(request.progressToken(), List.of()));
  }

  private Object cancel(List<Object> step) throws Exception {
    begun = new CountDownLatch(1);
    var call = client.callTool(request(step)).subscribe(result -> {}, error -> {});
    begun.await(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    call.dispose();
    return "cancelled";
  }

  private Object complete(List<Object> step) {
    var argument = new CompleteRequest.CompleteArgument((String) step.get(2), (String) step.get(3));
    var request = new CompleteRequest(new PromptReference((String) step.get(1)), argument);
    return sorted(client.completeCompletion(request).block(PATIENCE).completion().values().stream());
  }

  private Object subscribe(List<Object> step) {
    for (Object uri : (List<?>) step.get(1)) {
      client.subscribeResource(new SubscribeRequest((String) uri)).block(PATIENCE);
    }
    return true;
  }

  private static List<String> sorted(Stream<String> names) {
    return names.sorted().toList();
  }

  private Object listed(String verb) {
    return switch (verb) {
      case "tools" -> sorted(client.listTools().block(PATIENCE).tools().stream().map(t -> t.name()));
      case "resources" ->
          sorted(client.listResources().block(PATIENCE).resources().stream().map(r -> r.uri()));
      case "templates" -> sorted(client.listResourceTemplates().block(PATIENCE)
          .resourceTemplates().stream().map(t -> t.uriTemplate()));
      default -> sorted(client.listPrompts().block(PATIENCE).prompts().stream().map(p -> p.name()));
    };
  }

  private Object read(List<Object> step) {
    var found = client.readResource(new ReadResourceRequest((String) step.get(1))).block(PATIENCE);
    return ((TextResourceContents) found.contents().get(0)).text();
  }

  private Object prompt(List<Object> step) {
    var request = new GetPromptRequest((String) step.get(1), mapping(step.get(2)));
    var found = client.getPrompt(request).block(PATIENCE);
    return ((TextContent) found.messages().get(0).content()).text();
  }

  private Object play(List<Object> step) throws Exception {
    String verb = (String) step.get(0);
    return switch (verb) {
      case "tools", "resources", "templates", "prompts" -> listed(verb);
      case "call" -> call(step);
      case "cancel" -> cancel(step);
      case "read" -> read(step);
      case "prompt" -> prompt(step);
      case "complete" -> complete(step);
      case "hear" -> subscribe(step);
      case "logs" -> await(() -> logged(((Number) step.get(1)).intValue()));
      case "changed" -> await(() -> heard.contains(step.get(1)) ? step.get(1) : null);
      case "ping" -> client.ping().thenReturn(true).block(PATIENCE);
      default -> throw new IllegalArgumentException(verb);
    };
  }

  private Object outcome(List<Object> step) {
    try {
      return play(step);
    } catch (Exception error) {
      if (McpError.findRootCause(error) instanceof McpError said && said.getJsonRpcError() != null) {
        return Map.of("code", said.getJsonRpcError().code());
      }
      return Map.of("raised", String.valueOf(error));
    }
  }

  private McpClientTransport transport() {
    if (plan.get("target") instanceof List<?> command) {
      List<String> words = command.stream().map(String::valueOf).toList();
      var server = ServerParameters.builder(words.get(0)).args(words.subList(1, words.size())).build();
      return new StdioClientTransport(server, McpJsonDefaults.getMapper()) {
        @Override
        public List<String> protocolVersions() {
          return List.of(revision);
        }
      };
    }
    URI target = URI.create((String) plan.get("target"));
    String base = target.getScheme() + "://" + target.getAuthority();
    if (plan.get("transport").equals("sse")) {
      return HttpClientSseClientTransport.builder(base).sseEndpoint(target.getPath()).build();
    }
    // What the JDK's client does unless it is told otherwise: each POST offers an upgrade to HTTP/2.
    return HttpClientStreamableHttpTransport.builder(base).endpoint(target.getPath())
        .customizeClient(builder -> builder.version(HttpClient.Version.HTTP_2))
        .openConnectionOnStartup(true).supportedProtocolVersions(List.of(revision)).build();
  }

  private void connect() {
    var abilities = ClientCapabilities.builder().roots(true).sampling();
    if (revision.compareTo("2025-06-18") >= 0) {
      abilities.elicitation();
    }
    var spec = McpClient.async(transport())
        .requestTimeout(PATIENCE)
        .capabilities(abilities.build())
        .roots(new Root("file:///work", null))
        .sampling(request -> Mono.just(CreateMessageResult.builder(Role.ASSISTANT, "A thought.", "java").build()))
        .loggingConsumer(note -> hears("log " + note.data()))
        .toolsChangeConsumer(tools -> hears("tools"))
        .resourcesUpdateConsumer(contents -> hears("updated " + contents.get(0).uri()))
        .progressConsumer(note -> {
          progress.computeIfAbsent(note.progressToken(), token -> new ArrayList<>()).add(note.progress());
          begun.countDown();
          return Mono.empty();
        });
    if (revision.compareTo("2025-06-18") >= 0) {
      spec.elicitation(request -> Mono.just(
          ElicitResult.builder(ElicitResult.Action.ACCEPT).content(Map.of("row", 7)).build()));
    }
    client = spec.build();
    client.initialize().block(PATIENCE);
    client.setLoggingLevel(LoggingLevel.INFO).block(PATIENCE);
  }

  @SuppressWarnings("unchecked")
  static void visit(String words) throws Exception {
    McpJsonMapper json = McpJsonDefaults.getMapper();
    var visitor = new Visitor(json.readValue(words, new TypeRef<Map<String, Object>>() {}));
    visitor.connect();
    List<Object> outcomes = new ArrayList<>();
    for (Object step : (List<?>) visitor.plan.get("steps")) {
      outcomes.add(visitor.outcome((List<Object>) step));
    }
    String agreed = visitor.client.getCurrentInitializationResult().protocolVersion();
    System.out.println(json.writeValueAsString(Map.of("revision", agreed, "outcomes", outcomes)));
    visitor.client.closeGracefully().block(PATIENCE);
    System.exit(0);
  }
}
