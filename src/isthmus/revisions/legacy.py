"""The four legacy revisions: 2024-11-05 in full, and of each later one what changed."""

from isthmus import wire
from isthmus.revisions.table import Era, Feature, Revision

_EMPTY_REVISION = Revision("", Era.LEGACY, frozenset(), {}, {})

R2024_11_05 = _EMPTY_REVISION.evolve(
    "2024-11-05",
    methods={
        "client": (
            "initialize ping resources/list resources/templates/list resources/read "
            "resources/subscribe resources/unsubscribe prompts/list prompts/get tools/list "
            "tools/call logging/setLevel completion/complete notifications/cancelled "
            "notifications/initialized notifications/progress notifications/roots/list_changed"
        ),
        "server": (
            "ping sampling/createMessage roots/list notifications/cancelled "
            "notifications/progress notifications/resources/list_changed "
            "notifications/resources/updated notifications/prompts/list_changed "
            "notifications/tools/list_changed notifications/message"
        ),
    },
    fields={
        # identity and capabilities
        wire.Implementation: "name version",
        wire.Annotations: "audience priority",
        wire.ClientCapabilities: "experimental roots sampling",
        wire.RootsCapability: "list_changed",
        wire.SamplingCapability: "",
        wire.ServerCapabilities: "experimental logging prompts resources tools",
        wire.PromptsCapability: "list_changed",
        wire.ResourcesCapability: "list_changed subscribe",
        wire.ToolsCapability: "list_changed",
        # opening
        wire.InitializeParams: "capabilities client_info protocol_version meta",
        wire.InitializeResult: "capabilities instructions protocol_version server_info meta",
        wire.InitializedParams: "meta",
        wire.PingParams: "meta",
        wire.Result: "meta",
        wire.EmptyResult: "meta",
        # content
        wire.TextContent: "annotations text",
        wire.ImageContent: "annotations data mime_type",
        wire.EmbeddedResource: "annotations resource",
        wire.ResourceContents: "uri mime_type text blob",
        wire.TextResourceContents: "uri mime_type text",
        wire.BlobResourceContents: "uri mime_type blob",
        # tools
        wire.Tool: "name description input_schema",
        wire.ListToolsParams: "cursor meta",
        wire.ListToolsResult: "next_cursor tools meta",
        wire.CallToolParams: "name arguments meta",
        wire.CallToolResult: "content is_error meta",
        # resources
        wire.Resource: "annotations description mime_type name size uri",
        wire.ResourceTemplate: "annotations description mime_type name uri_template",
        wire.ListResourcesParams: "cursor meta",
        wire.ListResourcesResult: "next_cursor resources meta",
        wire.ListResourceTemplatesParams: "cursor meta",
        wire.ListResourceTemplatesResult: "next_cursor resource_templates meta",
        wire.ReadResourceParams: "uri meta",
        wire.ReadResourceResult: "contents meta",
        wire.SubscribeParams: "uri meta",
        wire.UnsubscribeParams: "uri meta",
        # prompts and completion
        wire.Prompt: "arguments description name",
        wire.PromptArgument: "description name required",
        wire.PromptMessage: "content role",
        wire.ListPromptsParams: "cursor meta",
        wire.ListPromptsResult: "next_cursor prompts meta",
        wire.GetPromptParams: "name arguments meta",
        wire.GetPromptResult: "description messages meta",
        wire.PromptReference: "name",
        wire.ResourceTemplateReference: "uri",
        wire.CompletionArgument: "name value",
        wire.CompleteParams: "argument ref meta",
        wire.Completion: "has_more total values",
        wire.CompleteResult: "completion meta",
        # what a server asks of a client
        wire.SamplingMessage: "content role",
        wire.ModelHint: "name",
        wire.ModelPreferences: "cost_priority hints intelligence_priority speed_priority",
        wire.CreateMessageParams: (
            "include_context max_tokens messages metadata model_preferences stop_sequences "
            "system_prompt temperature meta"
        ),
        wire.CreateMessageResult: "content model role stop_reason meta",
        wire.Root: "name uri",
        wire.ListRootsParams: "meta",
        wire.ListRootsResult: "roots meta",
        # notifications
        wire.SetLevelParams: "level meta",
        wire.LogMessageParams: "data level logger meta",
        wire.CancelledParams: "reason request_id meta",
        wire.ProgressParams: "progress progress_token total meta",
        wire.ListChangedParams: "meta",
        wire.ResourceUpdatedParams: "uri meta",
        wire.RootsListChangedParams: "meta",
    },
)


# One HTTP endpoint, batches, audio, hints on tools
R2025_03_26 = R2024_11_05.evolve(
    "2025-03-26",
    features={
        Feature.BATCHING,
        Feature.STREAMABLE_HTTP,
        Feature.SESSION_HEADER,
        Feature.RESUMPTION,
    },
    fields={
        wire.AudioContent: "annotations data mime_type",
        wire.ProgressParams: "message",
        wire.ServerCapabilities: "completions",
        wire.Tool: "annotations",
        wire.ToolAnnotations: (
            "destructive_hint idempotent_hint open_world_hint read_only_hint title"
        ),
    },
)


# Structured output, elicitation, resource links; batching goes
R2025_06_18 = R2025_03_26.evolve(
    "2025-06-18",
    features={Feature.STRUCTURED_OUTPUT, Feature.ELICITATION_FORM, Feature.VERSION_HEADER},
    without={Feature.BATCHING},
    methods={"server": "elicitation/create"},
    fields={
        # names for people
        wire.Implementation: "title",
        wire.PromptArgument: "title",
        wire.PromptReference: "title",
        # room for anything else
        wire.Annotations: "last_modified",
        wire.AudioContent: "meta",
        wire.BlobResourceContents: "meta",
        wire.EmbeddedResource: "meta",
        wire.ImageContent: "meta",
        wire.ResourceContents: "meta",
        wire.Root: "meta",
        wire.TextContent: "meta",
        wire.TextResourceContents: "meta",
        # both
        wire.Prompt: "title meta",
        wire.Resource: "title meta",
        wire.ResourceTemplate: "title meta",
        # structured output
        wire.Tool: "title output_schema meta",
        wire.CallToolResult: "structured_content",
        # resource links
        wire.ResourceLink: "annotations description mime_type name size title uri meta",
        # completion in context
        wire.CompleteParams: "context",
        wire.CompletionContext: "arguments",
        # elicitation
        wire.ClientCapabilities: "elicitation",
        wire.ElicitationCapability: "",
        wire.ElicitParams: "message requested_schema meta",
        wire.ElicitResult: "action content meta",
        wire.StringSchema: "type title description min_length max_length format",
        wire.NumberSchema: "type title description minimum maximum",
        wire.BooleanSchema: "type title description default",
        wire.LegacyTitledEnumSchema: "type title description enum enum_names",
    },
)


# Questions by URL, icons, models that use tools, tasks
_TASK_METHODS = "tasks/get tasks/result tasks/cancel tasks/list notifications/tasks/status"
_TASK_MEMBERS = "task_id status created_at last_updated_at ttl status_message poll_interval"

R2025_11_25 = R2025_06_18.evolve(
    "2025-11-25",
    features={
        Feature.ELICITATION_URL,
        Feature.PRIMING,
        Feature.URL_REQUIRED_ERROR,
        Feature.SAMPLING_TOOLS,
        Feature.TASKS,
    },
    methods={
        "client": _TASK_METHODS,
        "server": f"{_TASK_METHODS} notifications/elicitation/complete",
    },
    fields={
        # icons
        wire.Icon: "src mime_type sizes theme",
        wire.Implementation: "icons description website_url",
        wire.Prompt: "icons",
        wire.Resource: "icons",
        wire.ResourceLink: "icons",
        wire.ResourceTemplate: "icons",
        # elicitation: by URL, and richer forms
        wire.ElicitationCapability: "form url",
        wire.ElicitParams: "mode url elicitation_id task",
        wire.ElicitationCompleteParams: "elicitation_id meta",
        wire.StringSchema: "default",
        wire.NumberSchema: "default",
        wire.LegacyTitledEnumSchema: "default",
        wire.EnumOption: "const title",
        wire.EnumItems: "type enum",
        wire.TitledEnumItems: "any_of",
        wire.UntitledSingleSelectEnumSchema: "type title description enum default",
        wire.TitledSingleSelectEnumSchema: "type title description one_of default",
        wire.UntitledMultiSelectEnumSchema: (
            "type title description min_items max_items items default"
        ),
        wire.TitledMultiSelectEnumSchema: (
            "type title description min_items max_items items default"
        ),
        # sampling with tools
        wire.SamplingCapability: "context tools",
        wire.SamplingMessage: "meta",
        wire.CreateMessageParams: "tools tool_choice task",
        wire.ToolChoice: "mode",
        wire.ToolUseContent: "id input name meta",
        wire.ToolResultContent: "content is_error structured_content tool_use_id meta",
        # tasks
        wire.ClientCapabilities: "tasks",
        wire.ClientTasksCapability: "cancel list requests",
        wire.ClientTaskRequests: "elicitation sampling",
        wire.ElicitationTasks: "create",
        wire.SamplingTasks: "create_message",
        wire.ServerCapabilities: "tasks",
        wire.ServerTasksCapability: "cancel list requests",
        wire.ServerTaskRequests: "tools",
        wire.ToolTasks: "call",
        wire.Tool: "execution icons",
        wire.ToolExecution: "task_support",
        wire.CallToolParams: "task",
        wire.TaskMetadata: "ttl",
        wire.RelatedTaskMetadata: "task_id",
        wire.Task: _TASK_MEMBERS,
        wire.CreateTaskResult: "task meta",
        wire.GetTaskParams: "task_id meta",
        wire.GetTaskResult: f"{_TASK_MEMBERS} meta",
        wire.GetTaskPayloadParams: "task_id meta",
        wire.CancelTaskParams: "task_id meta",
        wire.CancelTaskResult: f"{_TASK_MEMBERS} meta",
        wire.ListTasksParams: "cursor meta",
        wire.ListTasksResult: "next_cursor tasks meta",
        wire.TaskStatusParams: f"{_TASK_MEMBERS} meta",
    },
)
