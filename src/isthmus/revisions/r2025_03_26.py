"""2025-03-26: one HTTP endpoint, batches, audio, hints on tools."""

from isthmus import wire
from isthmus.revisions.r2024_11_05 import R2024_11_05
from isthmus.revisions.table import Feature

__all__ = ["R2025_03_26"]

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
