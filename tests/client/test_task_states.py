"""How a task stands, from either shape."""

from isthmus.tasks.shapes import TaskState, to_task_state
from isthmus.wire import DetailedTask, GetTaskResult

TIMES = {"created_at": "c", "last_updated_at": "u"}


def test_either_shape_is_one_state():
    """Ours: seconds, and None for what is not said."""
    core = GetTaskResult(
        task_id="a", status="working", **TIMES, ttl=1500, poll_interval=250, status_message="w"
    )
    extended = DetailedTask(
        task_id="a",
        status="working",
        **TIMES,
        ttl_ms=1500,
        poll_interval_ms=250,
        status_message="w",
    )
    expected = TaskState(
        id="a", status="working", message="w", created_at="c", updated_at="u", ttl=1.5, poll_interval=0.25,
    )  # fmt: skip

    assert expected == to_task_state(core) == to_task_state(extended)
    assert not expected.over


def test_what_is_not_said_is_none():
    """Spec: null is for ever, and a poll interval is optional."""
    state = to_task_state(DetailedTask(task_id="a", status="failed", **TIMES, ttl_ms=None))

    assert (None, None, None, True) == (state.ttl, state.poll_interval, state.message, state.over)
