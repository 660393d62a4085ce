"""Lines of code of a program: those that hold something else than comments and docstrings."""

import ast
import io
import tokenize
from pathlib import Path

__all__ = ["count_code_lines"]

QUIET = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def count_code_lines(path: Path) -> int:
    """The lines that hold code, as the formatter wrote them."""
    text = path.read_text(encoding="utf-8")
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    held = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in QUIET
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(held - documented)
