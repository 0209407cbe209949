"""Finding the program in an answer that may wrap it in prose and fences."""

from __future__ import annotations

import ast

FENCE = "```"


def fenced_blocks(text: str) -> list[str]:
    """Return the contents of ``` fences, the last one even if it was never closed."""
    blocks: list[str] = []
    current: list[str] | None = None
    for line in text.splitlines():
        if line.lstrip().startswith(FENCE):
            if current is None:
                current = []
            else:
                blocks.append("\n".join(current))
                current = None
        elif current is not None:
            current.append(line)
    if current:
        blocks.append("\n".join(current))
    return blocks


def outside_fences(text: str) -> str:
    """Return the prose of an answer."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.lstrip().startswith(FENCE):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def parses(code: str) -> bool:
    """Tell whether a text is a Python program."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return False
    return True


def defines(code: str, entry: str) -> bool:
    """Tell whether a parseable program defines ``entry`` at its top level."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == entry:
            return True
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == entry for t in node.targets):
            return True
    return False


def extract_code(answer: str, entry: str) -> str | None:
    """Return the program that defines ``entry``, or None.

    A fenced block that defines it wins, the last such one; then all blocks together; then the bare answer, cut from its
    first and last line until it parses.
    """
    blocks = fenced_blocks(answer)
    for block in reversed(blocks):
        code = _parseable(block)
        if code is not None and defines(code, entry):
            return code
    for candidate in ("\n".join(blocks), answer):
        code = _parseable(candidate)
        if code is not None and defines(code, entry):
            return code
    return None


def _parseable(text: str) -> str | None:
    lines = text.strip("\n").splitlines()
    starts = [0, *(n for n, line in enumerate(lines) if line.startswith(("def ", "import ", "from ", "class ", "@", "async ")))]
    for start in starts[:6]:
        for end in range(len(lines), max(start, len(lines) - 40), -1):
            code = "\n".join(lines[start:end])
            if parses(code) and code.strip():
                return code
    return None
