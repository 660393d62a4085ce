use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use rmcp::{
    ErrorData, ServerHandler, ServiceExt,
    model::*,
    service::{RequestContext, RoleServer, SubscriptionContext},
    transport::{
        stdio,
        streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::broadcast, time::sleep};

const TOOLS: [&str; 11] = [
    "echo", "fail", "steps", "chat", "ask", "think", "where", "slow", "stopped", "grow", "touch",
];
const NAMES: [&str; 3] = ["Ada", "Alan", "Grace"];

/// A value of the library's, by what it is on the wire.
fn wire<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the wire has")
}

fn failed(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[derive(Clone)]
struct Counterpart {
    stopped: Arc<Mutex<HashSet<String>>>,
    grown: Arc<Mutex<bool>>,
    changes: broadcast::Sender<&'static str>,
}

type Answer = Result<CallToolResponse, ErrorData>;
type Context = RequestContext<RoleServer>;

fn text(words: impl Into<String>) -> Answer {
    Ok(CallToolResult::success(vec![ContentBlock::text(words.into())]).into())
}

fn modern(context: &Context) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.to_string().as_str() >= "2026")
}

/// What the client answered in this round; without an answer, the result that asks.
fn asked(request: &CallToolRequestParams, method: &str, params: Value) -> Result<Value, Answer> {
    let answers = request.input_responses.as_ref();
    if let Some(answer) = answers.and_then(|all| all.get("question")) {
        return Ok(serde_json::to_value(answer).expect("JSON"));
    }
    let questions = wire(json!({"question": {"method": method, "params": params}}));
    Err(Ok(
        InputRequiredResult::from_input_requests(questions).into()
    ))
}

fn form() -> Value {
    let row =
        json!({"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]});
    json!({"mode": "form", "message": "Which seat?", "requestedSchema": row})
}

fn conversation(topic: &Value) -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": topic}}], "maxTokens": 10})
}

impl Counterpart {
    async fn question(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
        method: &str,
        params: Value,
    ) -> Result<Value, Answer> {
        if modern(context) {
            return asked(request, method, params);
        }
        let peer = &context.peer;
        let answer = match method {
            "elicitation/create" => peer
                .create_elicitation(wire(params))
                .await
                .map(|a| json!(a)),
            "sampling/createMessage" => peer.create_message(wire(params)).await.map(|a| json!(a)),
            _ => peer.list_roots().await.map(|a| json!(a)),
        };
        answer.map_err(|error| Err(failed(error)))
    }

    async fn asking(
        &self,
        request: CallToolRequestParams,
        args: Value,
        context: Context,
    ) -> Answer {
        let (method, params) = match request.name.as_ref() {
            "ask" => ("elicitation/create", form()),
            "think" => ("sampling/createMessage", conversation(&args["topic"])),
            _ => ("roots/list", json!({})),
        };
        let answer = match self.question(&request, &context, method, params).await {
            Ok(answer) => answer,
            Err(instead) => return instead,
        };
        match request.name.as_ref() {
            "ask" => text(format!("row {}", answer["content"]["row"])),
            "think" => {
                let content = &answer["content"];
                let block = content.get(0).unwrap_or(content);
                text(block["text"].as_str().unwrap_or_default())
            }
            _ => {
                let roots = answer["roots"].as_array().cloned().unwrap_or_default();
                let uris: Vec<&str> = roots
                    .iter()
                    .filter_map(|root| root["uri"].as_str())
                    .collect();
                text(uris.join(","))
            }
        }
    }

    async fn steps(&self, done: f64, context: &Context) -> Result<(), ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            let report = ProgressNotificationParam::new(token, done);
            context.peer.notify_progress(report).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn lasting(&self, name: &str, key: String, context: Context) -> Answer {
        if name == "slow" {
            self.steps(1.0, &context).await?;
            context.ct.cancelled().await;
            self.stopped.lock().unwrap().insert(key);
            return text("too late");
        }
        for _ in 0..50 {
            if self.stopped.lock().unwrap().contains(&key) {
                return text("yes");
            }
            sleep(Duration::from_millis(100)).await;
        }
        text("no")
    }

    async fn changing(&self, name: &str, context: Context) -> Answer {
        let peer = &context.peer;
        if name == "grow" {
            let mut grown = self.grown.lock().unwrap();
            *grown = !*grown;
        }
        if modern(&context) {
            let _ = self.changes.send(if name == "grow" {
                "tools"
            } else {
                "note://one"
            });
        } else if name == "grow" {
            peer.notify_tool_list_changed().await.map_err(failed)?;
        } else {
            let params = wire(json!({"uri": "note://one"}));
            peer.notify_resource_updated(params).await.map_err(failed)?;
        }
        text(if name == "grow" { "changed" } else { "touched" })
    }

    async fn chat(&self, context: Context) -> Answer {
        for (level, words) in [("debug", "quiet"), ("warning", "loud")] {
            let params = LoggingMessageNotificationParam::new(wire(json!(level)), json!(words));
            context
                .peer
                .notify_logging_message(params)
                .await
                .map_err(failed)?;
        }
        text("said")
    }
}

impl ServerHandler for Counterpart {
    fn get_info(&self) -> ServerInfo {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerInfo::new(capabilities)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Answer {
        let args = Value::Object(request.arguments.clone().unwrap_or_default());
        let word = |name: &str| args[name].as_str().unwrap_or_default().to_string();
        match request.name.clone().as_ref() {
            "echo" => text(word("text")),
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it broke")]).into()),
            "steps" => {
                for done in [1.0, 2.0, 3.0] {
                    self.steps(done, &context).await?;
                    sleep(Duration::from_millis(20)).await;
                }
                text("done")
            }
            "chat" => self.chat(context).await,
            "ask" | "think" | "where" => self.asking(request, args, context).await,
            name @ ("slow" | "stopped") => self.lasting(name, word("key"), context).await,
            name @ ("grow" | "touch") => self.changing(name, context).await,
            name => Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let extra = if *self.grown.lock().unwrap() {
            &["extra"][..]
        } else {
            &[]
        };
        let tools: Vec<Value> = TOOLS
            .iter()
            .chain(extra)
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
            .collect();
        Ok(wire(json!({"tools": tools})))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(wire(
            json!({"resources": [{"uri": "note://one", "name": "one"}]}),
        ))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(wire(
            json!({"resourceTemplates": [{"uriTemplate": "note://{name}", "name": "note"}]}),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let words = match uri.strip_prefix("note://") {
            Some("one") => "Remember the milk.".to_string(),
            Some(name) => format!("Note {name}."),
            None => return Err(ErrorData::resource_not_found("no such note", None)),
        };
        let result: ReadResourceResult = wire(json!({"contents": [{"uri": uri, "text": words}]}));
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = json!({"name": "name", "required": true});
        Ok(wire(
            json!({"prompts": [{"name": "hello", "arguments": [name]}]}),
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let words = format!(
            "Say hello to {}.",
            arguments["name"].as_str().unwrap_or_default()
        );
        let message = json!({"role": "user", "content": {"type": "text", "text": words}});
        let result: GetPromptResult = wire(json!({"messages": [message]}));
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let typed = request.argument.value.as_str();
        let values: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| name.starts_with(typed))
            .collect();
        Ok(wire(json!({"completion": {"values": values}})))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => match change {
                    Ok("tools") => {
                        let _ = context.sink().notify_tool_list_changed().await;
                    }
                    Ok(uri) => {
                        let _ = context.sink().notify_resource_updated(uri).await;
                    }
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}

pub async fn serve(place: &[String]) {
    let counterpart = Counterpart {
        stopped: Arc::default(),
        grown: Arc::default(),
        changes: broadcast::channel(16).0,
    };
    if place[0] == "stdio" {
        let running = counterpart.serve(stdio()).await.expect("a client");
        let _ = running.waiting().await;
        return;
    }
    let service = TowerToHyperService::new(StreamableHttpService::new(
        move || Ok(counterpart.clone()),
        Arc::new(LocalSessionManager::default()),
        Default::default(),
    ));
    let address = format!("127.0.0.1:{}", place[1]);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .expect("the port");
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        let service = service.clone();
        tokio::spawn(async move {
            let builder = Builder::new(TokioExecutor::default());
            let _ = builder
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}
