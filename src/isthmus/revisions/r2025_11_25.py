"""2025-11-25: questions by URL, icons, models that use tools, tasks."""

from isthmus import wire
from isthmus.revisions.r2025_06_18 import R2025_06_18
from isthmus.revisions.table import Feature

__all__ = ["R2025_11_25"]

_TASKS = "tasks/get tasks/result tasks/cancel tasks/list notifications/tasks/status"
_TASK = "task_id status created_at last_updated_at ttl status_message poll_interval"

R2025_11_25 = R2025_06_18.evolve(
    "2025-11-25",
    features={
        Feature.ELICITATION_URL,
        Feature.PRIMING,
        Feature.URL_REQUIRED_ERROR,
        Feature.SAMPLING_TOOLS,
        Feature.TASKS,
    },
    methods={"client": _TASKS, "server": f"{_TASKS} notifications/elicitation/complete"},
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
        wire.Task: _TASK,
        wire.CreateTaskResult: "task meta",
        wire.GetTaskParams: "task_id meta",
        wire.GetTaskResult: f"{_TASK} meta",
        wire.GetTaskPayloadParams: "task_id meta",
        wire.CancelTaskParams: "task_id meta",
        wire.CancelTaskResult: f"{_TASK} meta",
        wire.ListTasksParams: "cursor meta",
        wire.ListTasksResult: "next_cursor tasks meta",
        wire.TaskStatusParams: f"{_TASK} meta",
    },
)
