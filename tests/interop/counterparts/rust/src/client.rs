use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, ServiceError,
    model::*,
    service::{
        NotificationContext, PeerRequestOptions, RequestContext, RoleClient, RunningService,
    },
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{process::Command, sync::Notify, time::timeout};

const PATIENCE: Duration = Duration::from_secs(15);

fn wire<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the wire has")
}

/// What was heard so far.
#[derive(Default)]
struct Heard {
    all: Mutex<BTreeSet<String>>,
    progress: Mutex<Vec<f64>>,
    news: Notify,
}

impl Heard {
    fn hears(&self, what: String) {
        self.all.lock().unwrap().insert(what);
        self.news.notify_one();
    }

    fn logs(&self) -> Vec<String> {
        let all = self.all.lock().unwrap();
        all.iter()
            .filter_map(|what| what.strip_prefix("log ").map(String::from))
            .collect()
    }

    async fn until(&self, heard: impl Fn() -> bool) -> Result<(), Value> {
        let wait = async {
            while !heard() {
                self.news.notified().await;
            }
        };
        timeout(PATIENCE, wait)
            .await
            .map_err(|_| json!({"raised": "too late"}))
    }
}

#[derive(Clone)]
struct Visitor {
    heard: Arc<Heard>,
    revision: ProtocolVersion,
}

impl ClientHandler for Visitor {
    fn get_info(&self) -> ClientInfo {
        let modes = if self.revision.as_str() < "2025-11-25" {
            json!({})
        } else {
            json!({"form": {}, "url": {}})
        };
        let capabilities = wire(json!({"roots": {}, "sampling": {}, "elicitation": modes}));
        ClientInfo::new(capabilities, Implementation::new("rust", "1"))
            .with_protocol_version(self.revision.clone())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if json!(params)["mode"] == "url" {
            return Ok(wire(json!({"action": "accept"})));
        }
        Ok(wire(json!({"action": "accept", "content": {"row": 7}})))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let content = json!({"type": "text", "text": "A thought."});
        Ok(wire(
            json!({"role": "assistant", "model": "rust", "content": content}),
        ))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(wire(json!({"roots": [{"uri": "file:///work"}]})))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.progress.lock().unwrap().push(params.progress);
        self.heard.news.notify_one();
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard
            .hears(format!("log {}", params.data.as_str().unwrap_or("no text")));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard.hears("tools".into());
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.hears(format!("updated {}", params.uri));
    }
}

struct Player {
    client: RunningService<RoleClient, Visitor>,
    heard: Arc<Heard>,
    modern: bool,
    deaf: bool,
}

fn wrong(error: ServiceError) -> Value {
    match error {
        ServiceError::McpError(error) => json!({"code": error.code.0}),
        error => json!({"raised": error.to_string()}),
    }
}

fn names<T: Serialize>(items: Vec<T>, key: &str) -> Value {
    let found: BTreeSet<String> = items
        .iter()
        .filter_map(|item| json!(item)[key].as_str().map(String::from))
        .collect();
    json!(found)
}

impl Player {
    fn request(&self, step: &Value) -> CallToolRequestParams {
        let mut params = json!({"name": step[1], "arguments": step[2]});
        if self.modern {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "info"});
        }
        self.heard.progress.lock().unwrap().clear();
        wire(params)
    }

    async fn call(&self, step: &Value) -> Result<Value, Value> {
        let result = json!(
            self.client
                .call_tool(self.request(step))
                .await
                .map_err(wrong)?
        );
        let blocks = result["content"].as_array().cloned().unwrap_or_default();
        let words: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let error = result["isError"].as_bool().unwrap_or(false);
        let progress = self.heard.progress.lock().unwrap().clone();
        Ok(json!({"text": words.join("\n"), "error": error, "progress": progress}))
    }

    async fn cancel(&self, step: &Value) -> Result<Value, Value> {
        let request = ClientRequest::CallToolRequest(Request::new(self.request(step)));
        let options = PeerRequestOptions::no_options();
        let pending = self
            .client
            .send_cancellable_request(request, options)
            .await
            .map_err(wrong)?;
        self.heard
            .until(|| !self.heard.progress.lock().unwrap().is_empty())
            .await?;
        pending
            .cancel(Some("no longer wanted".into()))
            .await
            .map_err(wrong)?;
        Ok(json!("cancelled"))
    }

    async fn hear(&mut self, uris: &Value) -> Result<Value, Value> {
        if self.modern {
            let filter = wire(json!({"toolsListChanged": true, "resourceSubscriptions": uris}));
            let mut stream = self.client.listen(filter).await.map_err(wrong)?;
            let heard = self.heard.clone();
            tokio::spawn(async move {
                while let Ok(Some(notification)) = stream.next().await {
                    let said = json!(notification);
                    match said["params"]["uri"].as_str() {
                        Some(uri) => heard.hears(format!("updated {uri}")),
                        None => heard.hears("tools".into()),
                    }
                }
            });
        } else {
            for uri in uris.as_array().into_iter().flatten() {
                self.client
                    .subscribe(wire(json!({"uri": uri})))
                    .await
                    .map_err(wrong)?;
            }
        }
        Ok(json!(true))
    }

    async fn texts(&self, step: &Value) -> Result<Value, Value> {
        match step[0].as_str() {
            Some("read") => {
                let params = wire(json!({"uri": step[1]}));
                let result = self.client.read_resource(params).await.map_err(wrong)?;
                Ok(json!(result)["contents"][0]["text"].clone())
            }
            Some("prompt") => {
                let params = wire(json!({"name": step[1], "arguments": step[2]}));
                let result = self.client.get_prompt(params).await.map_err(wrong)?;
                Ok(json!(result)["messages"][0]["content"]["text"].clone())
            }
            _ => {
                let ask = json!({
                    "ref": {"type": "ref/prompt", "name": step[1]},
                    "argument": {"name": step[2], "value": step[3]},
                });
                let result = self.client.complete(wire(ask)).await.map_err(wrong)?;
                Ok(json!(result)["completion"]["values"].clone())
            }
        }
    }

    async fn step(&mut self, step: &Value) -> Result<Value, Value> {
        let client = &self.client;
        match step[0].as_str().unwrap_or_default() {
            "tools" => Ok(names(client.list_all_tools().await.map_err(wrong)?, "name")),
            "resources" => Ok(names(
                client.list_all_resources().await.map_err(wrong)?,
                "uri",
            )),
            "templates" => {
                let found = client.list_all_resource_templates().await.map_err(wrong)?;
                Ok(names(found, "uriTemplate"))
            }
            "prompts" => Ok(names(
                client.list_all_prompts().await.map_err(wrong)?,
                "name",
            )),
            "call" => self.call(step).await,
            "cancel" => self.cancel(step).await,
            "logs" => {
                let count = step[1].as_u64().unwrap_or_default() as usize;
                self.heard
                    .until(|| self.heard.logs().len() >= count)
                    .await?;
                Ok(json!(self.heard.logs()))
            }
            "hear" => {
                self.deaf = true;
                let heard = self.hear(&step[1]).await?;
                self.deaf = false;
                Ok(heard)
            }
            "changed" if self.deaf => Err(json!({"raised": "nothing can be heard"})),
            "changed" => {
                let what = step[1].as_str().unwrap_or_default();
                self.heard
                    .until(|| self.heard.all.lock().unwrap().contains(what))
                    .await?;
                Ok(json!(what))
            }
            "ping" => {
                let ping = ClientRequest::PingRequest(Default::default());
                client.send_request(ping).await.map_err(wrong)?;
                Ok(json!(true))
            }
            _ => self.texts(step).await,
        }
    }
}

pub async fn visit(words: &str) {
    let plan: Value = serde_json::from_str(words).expect("a plan");
    let heard = Arc::<Heard>::default();
    let revision: ProtocolVersion = wire(plan["revision"].clone());
    let modern = plan["revision"].as_str() >= Some("2026");
    let visitor = Visitor {
        heard: heard.clone(),
        revision: revision.clone(),
    };
    let way = if modern {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![revision],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let client = if let Some(url) = plan["target"].as_str() {
        visitor
            .serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), way)
            .await
    } else {
        let argv: Vec<String> = wire(plan["target"].clone());
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        let process = TokioChildProcess::new(command).expect("the command");
        visitor.serve_with_lifecycle(process, way).await
    }
    .expect("a connection");
    if !modern {
        client
            .set_level(wire(json!({"level": "info"})))
            .await
            .expect("setLevel");
    }
    let agreed = json!(client.peer_info().map(|info| info.protocol_version.clone()));
    let mut player = Player {
        client,
        heard,
        modern,
        deaf: false,
    };
    let mut outcomes = vec![];
    for step in plan["steps"].as_array().into_iter().flatten() {
        let came = timeout(PATIENCE, player.step(step)).await;
        outcomes.push(
            came.unwrap_or(Err(json!({"raised": "no answer"})))
                .unwrap_or_else(|e| e),
        );
    }
    println!("{}", json!({"revision": agreed, "outcomes": outcomes}));
    let _ = player.client.cancel().await;
}
