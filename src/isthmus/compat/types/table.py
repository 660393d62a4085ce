"""Models of ``mcp.types`` as data: the base and the fields of each, as the specification names them.

A line is ``Base; field: type; field?: type; field=: "constant"``. A field with ``?`` may be absent and is
then None; one with ``=`` has a constant, which is its default, too. ``meta?`` is ``_meta``. Requests and
notifications are made of their method and of their params, see :data:`MESSAGES`.
"""

from isthmus.revisions import LEGACY, REVISIONS

MODELS = {
    "RequestParams": "MCPModel; meta?: Meta",
    "NotificationParams": "MCPModel; meta?: Meta",
    "PaginatedRequestParams": "RequestParams; cursor?: str",
    "Result": "MCPModel; meta?: Meta",
    "PaginatedResult": "Result; next_cursor?: str",
    "CacheableResult": "Result; ttl_ms?: int; cache_scope?: Literal['public', 'private']",
    "EmptyResult": "Result; result_type?: str",
    "BaseMetadata": "MCPModel; name: str; title?: str",
    "Icon": "MCPModel; src: str; mime_type?: str; sizes?: list[str]; theme?: IconTheme",
    "Implementation": (
        "BaseMetadata; version: str; description?: str; website_url?: str; icons?: list[Icon]"
    ),
    # Capabilities
    "RootsCapability": "MCPModel; list_changed?: bool",
    "SamplingContextCapability": "MCPModel",
    "SamplingToolsCapability": "MCPModel",
    "SamplingCapability": (
        "MCPModel; context?: SamplingContextCapability; tools?: SamplingToolsCapability"
    ),
    "FormElicitationCapability": "MCPModel",
    "UrlElicitationCapability": "MCPModel",
    "ElicitationCapability": (
        "MCPModel; form?: FormElicitationCapability; url?: UrlElicitationCapability"
    ),
    "ClientCapabilities": (
        "MCPModel; experimental?: dict[str, Object]; sampling?: SamplingCapability; elicitation?: "
        "ElicitationCapability; roots?: RootsCapability; extensions?: dict[str, Object]; tasks?: Object"
    ),
    "PromptsCapability": "MCPModel; list_changed?: bool",
    "ResourcesCapability": "MCPModel; subscribe?: bool; list_changed?: bool",
    "ToolsCapability": "MCPModel; list_changed?: bool",
    "LoggingCapability": "MCPModel",
    "CompletionsCapability": "MCPModel",
    "ServerCapabilities": (
        "MCPModel; experimental?: dict[str, Object]; logging?: LoggingCapability; prompts?: "
        "PromptsCapability; resources?: ResourcesCapability; tools?: ToolsCapability; completions?: "
        "CompletionsCapability; extensions?: dict[str, Object]; tasks?: Object"
    ),
    "InitializeRequestParams": (
        "RequestParams; protocol_version: str; capabilities: ClientCapabilities; "
        "client_info: Implementation"
    ),
    "InitializeResult": (
        "Result; protocol_version: str; capabilities: ServerCapabilities; server_info: "
        "Implementation; instructions?: str"
    ),
    "DiscoverResult": (
        "CacheableResult; supported_versions: list[str]; capabilities: ServerCapabilities; "
        "instructions?: str"
    ),
    "UnsupportedProtocolVersionErrorData": "MCPModel; supported: list[str]; requested: str",
    "MissingRequiredClientCapabilityErrorData": (
        "MCPModel; required_capabilities: ClientCapabilities"
    ),
    # Content
    "Annotations": "MCPModel; audience?: list[Role]; priority?: float; last_modified?: str",
    "TextContent": "MCPModel; type=: 'text'; text: str; annotations?: Annotations; meta?: Meta",
    "ImageContent": (
        "MCPModel; type=: 'image'; data: str; mime_type: str; annotations?: Annotations; meta?: Meta"
    ),
    "AudioContent": (
        "MCPModel; type=: 'audio'; data: str; mime_type: str; annotations?: Annotations; meta?: Meta"
    ),
    "ResourceContents": "MCPModel; uri: Uri; mime_type?: str; meta?: Meta",
    "TextResourceContents": "ResourceContents; text: str",
    "BlobResourceContents": "ResourceContents; blob: str",
    "EmbeddedResource": (
        "MCPModel; type=: 'resource'; resource: TextResourceContents | BlobResourceContents; "
        "annotations?: Annotations; meta?: Meta"
    ),
    "ResourceLink": "Resource; type=: 'resource_link'",
    "ToolUseContent": (
        "MCPModel; type=: 'tool_use'; name: str; id: str; input: Object; meta?: Meta"
    ),
    "ToolResultContent": (
        "MCPModel; type=: 'tool_result'; tool_use_id: str; content?: list[ContentBlock]; "
        "structured_content?: Any; is_error?: bool; meta?: Meta"
    ),
    # Tools
    "ToolAnnotations": (
        "MCPModel; title?: str; read_only_hint?: bool; destructive_hint?: bool; idempotent_hint?: bool; "
        "open_world_hint?: bool"
    ),
    "ToolExecution": "MCPModel; task_support?: Literal['forbidden', 'optional', 'required']",
    "Tool": (
        "BaseMetadata; description?: str; input_schema: Object; execution?: ToolExecution; "
        "output_schema?: Object; icons?: list[Icon]; annotations?: ToolAnnotations; meta?: Meta"
    ),
    "ListToolsResult": "ListResult; tools: list[Tool]",
    "TaskMetadata": "MCPModel; ttl?: int",
    "InputResponseRequestParams": "RequestParams; input_responses?: Object; request_state?: str",
    "CallToolRequestParams": (
        "InputResponseRequestParams; name: str; arguments?: Object; task?: TaskMetadata"
    ),
    "CallToolResult": (
        "Result; content: list[ContentBlock]; structured_content?: Any; is_error=: False"
    ),
    # Resources
    "Resource": (
        "BaseMetadata; uri: Uri; description?: str; mime_type?: str; size?: int; icons?: list[Icon]; "
        "annotations?: Annotations; meta?: Meta"
    ),
    "ResourceTemplate": (
        "BaseMetadata; uri_template: str; description?: str; mime_type?: str; icons?: list[Icon]; "
        "annotations?: Annotations; meta?: Meta"
    ),
    "ListResult": "PaginatedResult; ttl_ms?: int; cache_scope?: Literal['public', 'private']",
    "ListResourcesResult": "ListResult; resources: list[Resource]",
    "ListResourceTemplatesResult": "ListResult; resource_templates: list[ResourceTemplate]",
    "ReadResourceRequestParams": "InputResponseRequestParams; uri: Uri",
    "ReadResourceResult": (
        "CacheableResult; contents: list[TextResourceContents | BlobResourceContents]"
    ),
    "SubscribeRequestParams": "RequestParams; uri: Uri",
    "UnsubscribeRequestParams": "RequestParams; uri: Uri",
    "ResourceUpdatedNotificationParams": "NotificationParams; uri: Uri",
    # Prompts
    "PromptArgument": "BaseMetadata; description?: str; required?: bool",
    "Prompt": (
        "BaseMetadata; description?: str; arguments?: list[PromptArgument]; icons?: list[Icon]; "
        "meta?: Meta"
    ),
    "ListPromptsResult": "ListResult; prompts: list[Prompt]",
    "GetPromptRequestParams": ("InputResponseRequestParams; name: str; arguments?: dict[str, str]"),
    "PromptMessage": "MCPModel; role: Role; content: ContentBlock",
    "GetPromptResult": "Result; description?: str; messages: list[PromptMessage]",
    # Completion
    "ResourceTemplateReference": "MCPModel; type=: 'ref/resource'; uri: str",
    "PromptReference": "MCPModel; type=: 'ref/prompt'; name: str; title?: str",
    "CompletionArgument": "MCPModel; name: str; value: str",
    "CompletionContext": "MCPModel; arguments?: dict[str, str]",
    "CompleteRequestParams": (
        "RequestParams; ref: ResourceTemplateReference | PromptReference; argument: CompletionArgument; "
        "context?: CompletionContext"
    ),
    "Completion": "MCPModel; values: list[str]; total?: int; has_more?: bool",
    "CompleteResult": "Result; completion: Completion",
    # Logging, progress, cancellation
    "SetLevelRequestParams": "RequestParams; level: LoggingLevel",
    "LoggingMessageNotificationParams": (
        "NotificationParams; level: LoggingLevel; logger?: str; data: Any"
    ),
    "ProgressNotificationParams": (
        "NotificationParams; progress_token: ProgressToken; progress: float; total?: float; "
        "message?: str"
    ),
    "CancelledNotificationParams": "NotificationParams; request_id?: RequestId; reason?: str",
    # Questions to the client
    "ModelHint": "MCPModel; name?: str",
    "ModelPreferences": (
        "MCPModel; hints?: list[ModelHint]; cost_priority?: float; speed_priority?: float; "
        "intelligence_priority?: float"
    ),
    "ToolChoice": "MCPModel; mode?: Literal['auto', 'required', 'none']",
    "SamplingMessage": (
        "MCPModel; role: Role; content: SamplingMessageContentBlock | "
        "list[SamplingMessageContentBlock]; meta?: Meta"
    ),
    "CreateMessageRequestParams": (
        "RequestParams; messages: list[SamplingMessage]; model_preferences?: ModelPreferences; "
        "system_prompt?: str; include_context?: IncludeContext; temperature?: float; max_tokens: int; "
        "stop_sequences?: list[str]; metadata?: Object; tools?: list[Tool]; tool_choice?: ToolChoice; "
        "task?: TaskMetadata"
    ),
    "CreateMessageResult": (
        "Result; role: Role; content: SamplingContent; model: str; stop_reason?: str"
    ),
    "CreateMessageResultWithTools": (
        "Result; role: Role; content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]; "
        "model: str; stop_reason?: str"
    ),
    "Root": "MCPModel; uri: Uri; name?: str; meta?: Meta",
    "ListRootsResult": "Result; roots: list[Root]",
    "ElicitRequestFormParams": (
        "RequestParams; mode=: 'form'; message: str; requested_schema: Object; task?: TaskMetadata"
    ),
    "ElicitRequestURLParams": (
        "RequestParams; mode=: 'url'; message: str; url: str; elicitation_id?: str; "
        "task?: TaskMetadata"
    ),
    "ElicitResult": ("Result; action: Literal['accept', 'decline', 'cancel']; content?: Object"),
    "ElicitationRequiredErrorData": "MCPModel; elicitations: list[ElicitRequestURLParams]",
    "ElicitCompleteNotificationParams": "NotificationParams; elicitation_id: str",
    "InputRequiredResult": (
        "Result; result_type=: 'input_required'; input_requests?: dict[str, Any]; request_state?: str"
    ),
    # Tasks
    "Task": (
        "MCPModel; task_id: str; status: TaskStatus; status_message?: str; created_at: str; "
        "last_updated_at: str; ttl?: int; poll_interval?: int"
    ),
    # JSON-RPC
    "ErrorData": "MCPModel; code: int; message: str; data?: Any",
    "JSONRPCRequest": ("MCPModel; jsonrpc=: '2.0'; id: RequestId; method: str; params?: Object"),
    "JSONRPCNotification": "MCPModel; jsonrpc=: '2.0'; method: str; params?: Object",
    "JSONRPCResponse": "MCPModel; jsonrpc=: '2.0'; id: RequestId; result: Object",
    "JSONRPCError": "MCPModel; jsonrpc=: '2.0'; id?: RequestId; error: ErrorData",
}

# The method of each request and notification, and the name of its params; ``?``: they may be absent.
MESSAGES = {
    "InitializeRequest": ("initialize", "InitializeRequestParams"),
    "PingRequest": ("ping", "RequestParams?"),
    "DiscoverRequest": ("server/discover", "RequestParams?"),
    "ListToolsRequest": ("tools/list", "PaginatedRequestParams?"),
    "CallToolRequest": ("tools/call", "CallToolRequestParams"),
    "ListResourcesRequest": ("resources/list", "PaginatedRequestParams?"),
    "ListResourceTemplatesRequest": ("resources/templates/list", "PaginatedRequestParams?"),
    "ReadResourceRequest": ("resources/read", "ReadResourceRequestParams"),
    "SubscribeRequest": ("resources/subscribe", "SubscribeRequestParams"),
    "UnsubscribeRequest": ("resources/unsubscribe", "UnsubscribeRequestParams"),
    "ListPromptsRequest": ("prompts/list", "PaginatedRequestParams?"),
    "GetPromptRequest": ("prompts/get", "GetPromptRequestParams"),
    "CompleteRequest": ("completion/complete", "CompleteRequestParams"),
    "SetLevelRequest": ("logging/setLevel", "SetLevelRequestParams"),
    "CreateMessageRequest": ("sampling/createMessage", "CreateMessageRequestParams"),
    "ListRootsRequest": ("roots/list", "RequestParams?"),
    "ElicitRequest": ("elicitation/create", "ElicitRequestParams"),
    "InitializedNotification": ("notifications/initialized", "NotificationParams?"),
    "CancelledNotification": ("notifications/cancelled", "CancelledNotificationParams"),
    "ProgressNotification": ("notifications/progress", "ProgressNotificationParams"),
    "RootsListChangedNotification": ("notifications/roots/list_changed", "NotificationParams?"),
    "ToolListChangedNotification": ("notifications/tools/list_changed", "NotificationParams?"),
    "PromptListChangedNotification": ("notifications/prompts/list_changed", "NotificationParams?"),
    "ResourceListChangedNotification": (
        "notifications/resources/list_changed",
        "NotificationParams?",
    ),
    "ResourceUpdatedNotification": (
        "notifications/resources/updated",
        "ResourceUpdatedNotificationParams",
    ),
    "LoggingMessageNotification": ("notifications/message", "LoggingMessageNotificationParams"),
    "ElicitCompleteNotification": (
        "notifications/elicitation/complete",
        "ElicitCompleteNotificationParams",
    ),
}

# Types that are no models.
ALIASES = {
    "Role": "Literal['user', 'assistant']",
    "IconTheme": "Literal['light', 'dark']",
    "LoggingLevel": (
        "Literal['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']"
    ),
    "IncludeContext": "Literal['none', 'thisServer', 'allServers']",
    "TaskStatus": "Literal['working', 'input_required', 'completed', 'failed', 'cancelled']",
    "Meta": "dict[str, Any]",
    "Object": "dict[str, Any]",
    "Cursor": "str",
    "StopReason": "str",
    "ResultType": "str",
    "RequestId": "int | str",
    "ProgressToken": "str | int",
    "AnyFunction": "Any",
    "ContentBlock": "TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource",
    "Content": "TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource",
    "SamplingContent": "TextContent | ImageContent | AudioContent",
    "SamplingMessageContentBlock": (
        "TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent"
    ),
    "ElicitRequestedSchema": "dict[str, Any]",
    "ElicitRequestParams": "ElicitRequestURLParams | ElicitRequestFormParams",
    "InputRequest": "CreateMessageRequest | ListRootsRequest | ElicitRequest",
    "InputRequests": "dict[str, Any]",
    "InputResponse": "CreateMessageResult | ListRootsResult | ElicitResult",
    "InputResponses": "dict[str, Any]",
    "JSONRPCMessage": ("JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError"),
    "ClientResult": "EmptyResult | CreateMessageResult | ListRootsResult | ElicitResult",
    "ServerRequest": "PingRequest | CreateMessageRequest | ListRootsRequest | ElicitRequest",
    "ClientRequest": (
        "PingRequest | InitializeRequest | CompleteRequest | SetLevelRequest | GetPromptRequest | "
        "ListPromptsRequest | ListResourcesRequest | ListResourceTemplatesRequest | "
        "ReadResourceRequest | SubscribeRequest | UnsubscribeRequest | CallToolRequest | ListToolsRequest"
    ),
    "ClientNotification": (
        "CancelledNotification | ProgressNotification | InitializedNotification | "
        "RootsListChangedNotification"
    ),
    "ServerNotification": (
        "CancelledNotification | ProgressNotification | LoggingMessageNotification | "
        "ResourceUpdatedNotification | ResourceListChangedNotification | ToolListChangedNotification | "
        "PromptListChangedNotification"
    ),
    "ServerResult": (
        "EmptyResult | InitializeResult | CompleteResult | GetPromptResult | ListPromptsResult | "
        "ListResourcesResult | ListResourceTemplatesResult | ReadResourceResult | CallToolResult | "
        "ListToolsResult"
    ),
}

# Aliases that 1.x has as models which wrap one of the messages.
MESSAGE_UNIONS = frozenset({
    *("ClientRequest", "ClientNotification", "ClientResult"),
    *("ServerRequest", "ServerNotification", "ServerResult", "JSONRPCMessage"),
})  # fmt: skip

CONSTANTS = {
    "LATEST_PROTOCOL_VERSION": "2026-07-28",
    "DEFAULT_NEGOTIATED_VERSION": "2025-03-26",
    "SUPPORTED_PROTOCOL_VERSIONS": [one.name for one in REVISIONS],
    "HANDSHAKE_PROTOCOL_VERSIONS": tuple(one.name for one in LEGACY),
    "MODERN_PROTOCOL_VERSIONS": tuple(one.name for one in REVISIONS if one not in LEGACY),
    "PARSE_ERROR": -32700,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
    "CONNECTION_CLOSED": -32000,
    "REQUEST_TIMEOUT": -32001,
    "URL_ELICITATION_REQUIRED": -32042,
    "MISSING_REQUIRED_CLIENT_CAPABILITY": -32021,
    "PROTOCOL_VERSION_META_KEY": "io.modelcontextprotocol/protocolVersion",
    "CLIENT_INFO_META_KEY": "io.modelcontextprotocol/clientInfo",
    "CLIENT_CAPABILITIES_META_KEY": "io.modelcontextprotocol/clientCapabilities",
    "LOG_LEVEL_META_KEY": "io.modelcontextprotocol/logLevel",
    "SERVER_INFO_META_KEY": "io.modelcontextprotocol/serverInfo",
}
