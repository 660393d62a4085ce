"""The modern revision, 2026-07-28: requests stand alone, questions travel in results; sessions and tasks go."""

from isthmus import wire
from isthmus.revisions.legacy import R2025_11_25
from isthmus.revisions.table import Era, Feature

_CACHE_MEMBERS = "result_type ttl_ms cache_scope"

R2026_07_28 = R2025_11_25.evolve(
    "2026-07-28",
    era=Era.MODERN,
    features={
        Feature.ROUTING_HEADERS,
        Feature.EXTENSIONS,
        Feature.RESULT_TYPE,
        Feature.CACHE_HINTS,
        Feature.SERVER_STAMP,
        Feature.DISCONNECT_CANCELS,
    },
    without={
        Feature.SESSION_HEADER,
        Feature.RESUMPTION,
        Feature.PRIMING,
        Feature.URL_REQUIRED_ERROR,
        Feature.TASKS,
    },
    methods={
        "client": "server/discover subscriptions/listen",
        "server": "notifications/subscriptions/acknowledged",
    },
    without_methods={
        "client": (
            "initialize ping resources/subscribe resources/unsubscribe logging/setLevel "
            "tasks/get tasks/result tasks/cancel tasks/list notifications/initialized "
            "notifications/progress notifications/tasks/status notifications/roots/list_changed"
        ),
        # A server asks inside its results: the methods live on in InputRequest.
        "server": (
            "ping sampling/createMessage roots/list elicitation/create tasks/get tasks/result "
            "tasks/cancel tasks/list notifications/tasks/status "
            "notifications/elicitation/complete"
        ),
    },
    fields={
        wire.Envelope: "meta name uri task_id",
        wire.RequestMeta: (
            "progress_token protocol_version client_info client_capabilities log_level"
        ),
        wire.ClientCapabilities: "extensions",
        wire.ServerCapabilities: "extensions",
        wire.DiscoverParams: "meta",
        wire.DiscoverResult: f"capabilities instructions supported_versions meta {_CACHE_MEMBERS}",
        # results say what they are and how long they last
        wire.Result: "result_type",
        wire.EmptyResult: "result_type",
        wire.CacheableResult: f"meta {_CACHE_MEMBERS}",
        wire.CallToolResult: "result_type",
        wire.CompleteResult: "result_type",
        wire.GetPromptResult: "result_type",
        wire.ListPromptsResult: _CACHE_MEMBERS,
        wire.ListResourceTemplatesResult: _CACHE_MEMBERS,
        wire.ListResourcesResult: _CACHE_MEMBERS,
        wire.ListToolsResult: _CACHE_MEMBERS,
        wire.ReadResourceResult: _CACHE_MEMBERS,
        # questions in results, answers in params
        wire.InputRequest: "method params",
        wire.InputRequiredResult: "input_requests request_state result_type meta",
        wire.CallToolParams: "input_responses request_state",
        wire.GetPromptParams: "input_responses request_state",
        wire.ReadResourceParams: "input_responses request_state",
        # streams of changes
        wire.SubscriptionFilter: (
            "prompts_list_changed resource_subscriptions resources_list_changed tools_list_changed"
        ),
        wire.ListenParams: "notifications meta",
        wire.ListenResult: "result_type meta",
        wire.AcknowledgedParams: "notifications meta",
    },
    without_fields={
        wire.RootsCapability: "list_changed",
        wire.ClientCapabilities: "tasks",
        wire.ServerCapabilities: "tasks",
        wire.Tool: "execution",
        wire.CallToolParams: "task",
        wire.CreateMessageParams: "task meta",
        wire.ElicitParams: "elicitation_id task meta",
        wire.ElicitResult: "meta",
        wire.ListRootsResult: "meta",
    },
    without_types={
        wire.InitializeParams,
        wire.InitializeResult,
        wire.InitializedParams,
        wire.PingParams,
        wire.SetLevelParams,
        wire.SubscribeParams,
        wire.UnsubscribeParams,
        wire.RootsListChangedParams,
        wire.ElicitationCompleteParams,
        wire.ToolExecution,
        wire.ClientTasksCapability,
        wire.ClientTaskRequests,
        wire.ElicitationTasks,
        wire.SamplingTasks,
        wire.ServerTasksCapability,
        wire.ServerTaskRequests,
        wire.ToolTasks,
        wire.TaskMetadata,
        wire.RelatedTaskMetadata,
        wire.Task,
        wire.CreateTaskResult,
        wire.GetTaskParams,
        wire.GetTaskResult,
        wire.GetTaskPayloadParams,
        wire.CancelTaskParams,
        wire.CancelTaskResult,
        wire.ListTasksParams,
        wire.ListTasksResult,
        wire.TaskStatusParams,
    },
    # io.modelcontextprotocol/tasks
    extended_methods={
        "client": "tasks/get tasks/update tasks/cancel",
        "server": "notifications/tasks",
    },
    extended_fields={wire.SubscriptionFilter: "task_ids"},
)
