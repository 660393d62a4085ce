"""Edits of the arguments of a call: what is taken out, put in the place of another, or added."""

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from isthmus.migration.edits import Span, TextEdits
from isthmus.migration.native.module_text import ModuleText


class CallEdits:
    """Edits the arguments of calls; all that stays is untouched.

    Args:
        module: the module.
        edits: takes the edits.
    """

    def __init__(self, module: ModuleText, edits: TextEdits) -> None:
        self._module = module
        self._edits = edits

    def rewrite(
        self,
        call: cst.Call,
        changed: Mapping[cst.Arg, Sequence[str]],
        added: Sequence[str] = (),
        *,
        prefixed: Mapping[cst.Arg, str] | None = None,
    ) -> None:
        """Rewrite the arguments of a call.

        Args:
            call: the call.
            changed: new arguments for old ones; at most one has none.
            added: arguments that come last.
            prefixed: keywords for arguments that had none.
        """
        extra = list(added)
        for argument, keyword in (prefixed or {}).items():
            start = self._module.span_of(argument).start
            self._edits.replace(Span(start, start), f"{keyword}=")
        for argument, texts in changed.items():
            made = [*texts]
            if not made and extra:
                made, extra = extra, []
            if made:
                self._edits.replace(self._module.span_of(argument), ", ".join(made))
            else:
                self._edits.replace(self._span_to_remove(call.args, argument), "")
        if extra:
            self._add(call, extra)

    def _add(self, call: cst.Call, extra: Sequence[str]) -> None:
        text = ", ".join(extra)
        if call.args:
            end = self._module.span_of(call.args[-1]).end
            self._edits.replace(Span(end, end), f", {text}")
        else:
            end = self._module.span_of(call).end - 1
            self._edits.replace(Span(end, end), text)

    def _span_to_remove(self, arguments: Sequence[cst.Arg], argument: cst.Arg) -> Span:
        index = arguments.index(argument)
        own = self._module.span_of(argument)
        if index + 1 < len(arguments):
            return Span(own.start, self._module.span_of(arguments[index + 1]).start)
        if index:
            return Span(self._module.span_of(arguments[index - 1]).end, own.end)
        return own


def read_keywords(
    call: cst.Call, refuse: Callable[[cst.CSTNode, str], Exception], *, positional: Sequence[str]
) -> dict[str, cst.Arg]:
    """The arguments of a call by keyword.

    Args:
        call: the call.
        refuse: makes the exception for what has no keyword.
        positional: the keywords of the arguments that may be given without.

    Raises:
        Exception: an argument has stars, or is one too many.
    """
    found: dict[str, cst.Arg] = {}
    for index, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and index >= len(positional)):
            raise refuse(argument, "this argument has no native spelling")
        name = positional[index] if argument.keyword is None else argument.keyword.value
        found[name] = argument
    return found
