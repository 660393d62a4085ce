"""Numbers that settings may have, seen to where they are given."""

from isthmus.errors import UsageError

__all__ = ["check_number"]


def check_number(
    name: str,
    value: object,
    *,
    least: float = 0,
    above: float | None = None,
    whole: bool = False,
    unit: str = "seconds",
) -> None:
    """See that a setting is a number that it can be.

    Args:
        name: of the argument.
        value: what was given.
        least: the smallest that will do.
        above: what it has to be more than, instead.
        whole: whether it has no fraction.
        unit: what it counts.

    Raises:
        UsageError: it is no number, or too small.
    """
    kinds = int if whole else (int, float)
    good = isinstance(value, kinds) and not isinstance(value, bool)
    if good and (value > above if above is not None else value >= least):  # type: ignore[operator]  # a number
        return
    kind = "a whole number" if whole else "a number"
    bound = f"{least:g} or more" if above is None else f"more than {above:g}"
    raise UsageError(f"{name}= is {kind} of {unit}, {bound}, not {value!r}")
