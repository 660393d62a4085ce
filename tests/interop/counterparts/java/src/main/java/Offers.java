import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncCompletionSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceTemplateSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncToolSpecification;
import io.modelcontextprotocol.server.McpSyncServer;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.HttpServletSseServerTransportProvider;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.CompleteResult;
import io.modelcontextprotocol.spec.McpSchema.CreateMessageRequest;
import io.modelcontextprotocol.spec.McpSchema.ElicitRequest;
import io.modelcontextprotocol.spec.McpSchema.GetPromptResult;
import io.modelcontextprotocol.spec.McpSchema.LoggingLevel;
import io.modelcontextprotocol.spec.McpSchema.LoggingMessageNotification;
import io.modelcontextprotocol.spec.McpSchema.ProgressNotification;
import io.modelcontextprotocol.spec.McpSchema.Prompt;
import io.modelcontextprotocol.spec.McpSchema.PromptArgument;
import io.modelcontextprotocol.spec.McpSchema.PromptMessage;
import io.modelcontextprotocol.spec.McpSchema.PromptReference;
import io.modelcontextprotocol.spec.McpSchema.ReadResourceResult;
import io.modelcontextprotocol.spec.McpSchema.Resource;
import io.modelcontextprotocol.spec.McpSchema.ResourceTemplate;
import io.modelcontextprotocol.spec.McpSchema.ResourcesUpdatedNotification;
import io.modelcontextprotocol.spec.McpSchema.Role;
import io.modelcontextprotocol.spec.McpSchema.Root;
import io.modelcontextprotocol.spec.McpSchema.SamplingMessage;
import io.modelcontextprotocol.spec.McpSchema.ServerCapabilities;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.TextResourceContents;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import jakarta.servlet.http.HttpServlet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.catalina.startup.Tomcat;

/** The server: everything that every server here offers. */
final class Offers {
  private interface Call extends BiFunction<McpSyncServerExchange, CallToolRequest, CallToolResult> {}

  private final Set<String> stopped = ConcurrentHashMap.newKeySet();
  private McpSyncServer server;
  private boolean grown;

  private static SyncToolSpecification tool(String name, Call call, String... parameters) {
    Map<String, Object> properties = new HashMap<>();
    for (String parameter : parameters) {
      properties.put(parameter, Map.of("type", "string"));
    }
    Map<String, Object> schema =
        Map.of("type", "object", "properties", properties, "required", List.of(parameters));
    Tool offered = Tool.builder(name, schema).description("The tool " + name + ".").build();
    return new SyncToolSpecification(offered, call);
  }

  private static CallToolResult said(String words) {
    return CallToolResult.builder().addTextContent(words).build();
  }

  private static CallToolResult failed(String words) {
    return CallToolResult.builder().addTextContent(words).isError(true).build();
  }

  private static String argument(CallToolRequest request, String name) {
    return (String) request.arguments().get(name);
  }

  private static void sleep(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException stop) {
      throw new IllegalStateException(stop);
    }
  }

  private static void report(McpSyncServerExchange exchange, CallToolRequest request, double done) {
    if (request.progressToken() != null) {
      exchange.progressNotification(
          new ProgressNotification(request.progressToken(), done, null, null));
    }
  }

  private static Stream<SyncToolSpecification> plain() {
    return Stream.of(
        tool("echo", (exchange, request) -> said(argument(request, "text")), "text"),
        tool("fail", (exchange, request) -> failed("it broke")),
        tool("steps", (exchange, request) -> {
          for (double done = 1; done <= 3; done++) {
            report(exchange, request, done);
            sleep(20);
          }
          return said("done");
        }),
        tool("chat", (exchange, request) -> {
          exchange.loggingNotification(
              LoggingMessageNotification.builder(LoggingLevel.DEBUG, "quiet").build());
          exchange.loggingNotification(
              LoggingMessageNotification.builder(LoggingLevel.WARNING, "loud").build());
          return said("said");
        }));
  }

  private static Stream<SyncToolSpecification> asking() {
    return Stream.of(
        tool("ask", (exchange, request) -> {
          Map<String, Object> form = Map.of(
              "type", "object",
              "properties", Map.of("row", Map.of("type", "integer")),
              "required", List.of("row"));
          var answer = exchange.createElicitation(ElicitRequest.builder("Which seat?", form).build());
          return said("row " + answer.content().get("row"));
        }),
        tool("think", (exchange, request) -> {
          var words = SamplingMessage.builder(Role.USER, new TextContent(argument(request, "topic")));
          var question = CreateMessageRequest.builder(List.of(words.build()), 10).build();
          return said(((TextContent) exchange.createMessage(question).content()).text());
        }, "topic"),
        tool("where", (exchange, request) -> said(exchange.listRoots().roots().stream()
            .map(Root::uri)
            .collect(Collectors.joining(",")))));
  }

  private Stream<SyncToolSpecification> lasting() {
    return Stream.of(
        tool("slow", (exchange, request) -> {
          report(exchange, request, 1);
          try {
            Thread.sleep(60_000);
            return said("too late");
          } catch (InterruptedException stop) {
            stopped.add(argument(request, "key"));
            return failed("cancelled");
          }
        }, "key"),
        tool("stopped", (exchange, request) -> {
          for (int tries = 0; tries < 50; tries++) {
            if (stopped.contains(argument(request, "key"))) {
              return said("yes");
            }
            sleep(100);
          }
          return said("no");
        }, "key"),
        tool("drop", (exchange, request) -> said("kept")));
  }

  private Stream<SyncToolSpecification> changing() {
    return Stream.of(
        tool("grow", (exchange, request) -> {
          grown = !grown;
          if (grown) {
            server.addTool(tool("extra", (other, call) -> said("new")));
          } else {
            server.removeTool("extra");
          }
          return said("changed");
        }),
        tool("touch", (exchange, request) -> {
          server.notifyResourcesUpdated(new ResourcesUpdatedNotification("note://one"));
          return said("touched");
        }));
  }

  private static ReadResourceResult read(String uri) {
    String words = "Note " + uri.replaceFirst("note://", "") + ".";
    if (uri.equals("note://one")) {
      words = "Remember the milk.";
    }
    return new ReadResourceResult(List.of(new TextResourceContents(uri, "text/plain", words)));
  }

  private <S extends McpServer.SyncSpecification<S>> McpSyncServer build(
      McpServer.SyncSpecification<S> plan) {
    var tools = Stream.of(plain(), asking(), lasting(), changing()).flatMap(each -> each);
    var name = PromptArgument.builder("name").required(true).build();
    var hello = Prompt.builder("hello").arguments(List.of(name)).build();
    return plan.serverInfo("counterpart", "1")
        .capabilities(ServerCapabilities.builder()
            .tools(true).resources(true, true).prompts(true).logging().completions().build())
        .tools(tools.toList())
        .resources(new SyncResourceSpecification(
            Resource.builder("note://one", "one").build(),
            (exchange, request) -> read(request.uri())))
        .resourceTemplates(new SyncResourceTemplateSpecification(
            ResourceTemplate.builder("note://{name}", "note").build(),
            (exchange, request) -> read(request.uri())))
        .prompts(new SyncPromptSpecification(hello, (exchange, request) -> {
          var words = new TextContent("Say hello to " + request.arguments().get("name") + ".");
          return new GetPromptResult("A greeting.", List.of(new PromptMessage(Role.USER, words)));
        }))
        .completions(new SyncCompletionSpecification(
            new PromptReference("hello"),
            (exchange, request) -> new CompleteResult(new CompleteResult.CompleteCompletion(
                Stream.of("Ada", "Alan", "Grace")
                    .filter(each -> each.startsWith(request.argument().value())).toList()))))
        .build();
  }

  private static void listen(HttpServlet servlet, String port) throws Exception {
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
    tomcat.setHostname("127.0.0.1");
    tomcat.setPort(Integer.parseInt(port));
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    var context = tomcat.addContext("", null);
    var wrapper = Tomcat.addServlet(context, "mcp", servlet);
    wrapper.setAsyncSupported(true);
    context.addServletMappingDecoded("/*", "mcp");
    tomcat.start();
    tomcat.getServer().await();
  }

  void serve(String[] args) throws Exception {
    switch (args[1]) {
      case "stdio" -> server =
          build(McpServer.sync(new StdioServerTransportProvider(McpJsonDefaults.getMapper())));
      case "sse" -> {
        var way = HttpServletSseServerTransportProvider.builder()
            .sseEndpoint("/sse").messageEndpoint("/message").build();
        server = build(McpServer.sync(way));
        listen(way, args[2]);
      }
      default -> {
        var way = HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
        server = build(McpServer.sync(way));
        listen(way, args[2]);
      }
    }
  }
}
