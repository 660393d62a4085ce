"""2025-06-18: structured output, elicitation, resource links; batching goes."""

from isthmus import wire
from isthmus.revisions.r2025_03_26 import R2025_03_26
from isthmus.revisions.table import Feature

__all__ = ["R2025_06_18"]

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
