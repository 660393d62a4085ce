"""2024-11-05: the first revision, in full; those after it say only what changed."""

from isthmus import wire
from isthmus.revisions.table import Era, Revision

__all__ = ["R2024_11_05"]

_NOTHING = Revision("", Era.LEGACY, frozenset(), {}, {})

R2024_11_05 = _NOTHING.evolve(
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
