"""Hidden values: what a person did not see of arguments, put back into their edit of these."""

from typing import Any

from isthmus.core.encoding import is_same_json
from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.host.model.errors import BadArguments


def restore_hidden(edited: Any, whole: Any, shown: Any) -> Any:
    """An edit of what was shown, with what was hidden there as it is.

    Args:
        edited: what a person made of what they saw.
        whole: what it was made of.
        shown: what they saw: the same, with marks for what is hidden.

    Raises:
        BadArguments: elements of a list were moved or removed, and nobody knows whose hidden value is meant.
    """
    if isinstance(edited, str) and edited == REDACTED:
        return whole
    if isinstance(edited, dict) and isinstance(whole, dict):
        seen = shown if isinstance(shown, dict) else {}
        return {
            name: restore_hidden(value, whole.get(name, value), seen.get(name))
            for name, value in edited.items()
        }
    if isinstance(edited, list) and isinstance(whole, list) and isinstance(shown, list):
        return _restore_list(edited, whole, shown)
    return edited


def _restore_list(edited: list[Any], whole: list[Any], shown: list[Any]) -> list[Any]:
    """A list in which elements with hidden values are those that looked so; others stand where they stood."""
    restored, taken = list(edited), set[int]()
    stays = []
    for number, value in enumerate(edited):
        if not _holds_hidden(value):
            continue
        alike = [at for at, one in enumerate(shown) if at not in taken and is_same_json(one, value)]
        if number in alike and len(edited) == len(whole):
            place = number
        elif alike and all(is_same_json(whole[at], whole[alike[0]]) for at in alike):
            place = alike[0]
        else:
            stays.append(number)
            continue
        taken.add(place)
        restored[number] = restore_hidden(value, whole[place], shown[place])
    for number in stays:  # edited where it stands, unless another one was put there
        if len(edited) != len(whole) or number in taken:
            raise BadArguments(
                "an edit moved or removed elements of a list with hidden values, and it is not clear "
                "whose they are: leave each of these elements in its place, or write the values"
            )
        restored[number] = restore_hidden(edited[number], whole[number], shown[number])
    return restored


def _holds_hidden(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_hidden, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and value == REDACTED
