"""Writes the async method of each method that runs an operation: `python -m tools.async_halves`, or `make format`.

A method such as `get_tuple` is written by hand. Behind it stands `aget_tuple`, made from its text: the runner's async
call in the place of the blocking one, and in the docstring the names of async methods. So the two cannot drift apart.
Private helpers that differ in more than that, such as `_run` and `_arun`, are written by hand.

    python -m tools.async_halves            write
    python -m tools.async_halves --check    end with 1 if a file would change
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tools.generated import ROOT, write_or_check

MODULES = (
    "langgraph.checkpoint.dynamodb._operations.setup",
    "langgraph.checkpoint.dynamodb.base_saver",
    "langgraph.store.dynamodb.store",
    "langgraph.cache.dynamodb.node_cache",
)
_COMMAND = "python -m tools.async_halves"
_RUNS = re.compile(r"\bself\.runner\.run\(")
_STREAMS = re.compile(r"\bself\.runner\.stream\(")
_CALL = re.compile(r"\bself\.(\w+)\(")
_QUOTED = re.compile(r"`(\w+)`")


def async_name(name: str) -> str:
    """Return the name of the async method."""
    return f"_a{name[1:]}" if name.startswith("_") else f"a{name}"


def generated(text: str, known: dict[str, set[str]]) -> str:
    """Return a module with the async method behind each method that runs an operation.

    Args:
        text: The module.
        known: For each class of it, the names that have an async method.
    """
    lines = text.splitlines(keepends=True)
    for class_ in [each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)][::-1]:
        methods = {
            each.name: each
            for each in class_.body
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        names = known.get(class_.name, set())
        wanted = [name for name, each in methods.items() if _runs_operation(each, lines, names)]
        halves = {name: _async_half(methods[name], lines, names | set(wanted)) for name in wanted}
        # From the end of the file on, so that the numbers of the lines before stay.
        for name, each in reversed(methods.items()):
            if name in {async_name(one) for one in wanted}:
                _remove(lines, each)
            if name in wanted:
                lines[each.end_lineno : each.end_lineno] = ["\n", *halves[name]]
    return _formatted("".join(lines))


def _runs_operation(
    method: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], names: set[str]
) -> bool:
    """Tell whether a method needs an async one: it is public, and waits for requests."""
    if method.name.startswith("_") or isinstance(method, ast.AsyncFunctionDef):
        return False
    code = "".join(line for line, is_code in _lines_of(method, lines) if is_code)
    calls = {call[1] for call in _CALL.finditer(code)} & names
    return bool(_RUNS.search(code) or _STREAMS.search(code) or calls)


def _lines_of(
    method: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Yield a method's lines, each with whether it is code and not docstring."""
    first = min([method.lineno, *(each.lineno for each in method.decorator_list)])
    docstring = method.body[0] if ast.get_docstring(method) is not None else None
    for number in range(first, (method.end_lineno or first) + 1):
        is_docstring = docstring is not None and docstring.lineno <= number <= (docstring.end_lineno or 0)
        yield lines[number - 1], not is_docstring


def _async_half(
    method: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], names: set[str]
) -> list[str]:
    parts = list(_lines_of(method, lines))
    streams = any(is_code and _STREAMS.search(line) for line, is_code in parts)
    return [
        _async_code(line, method.name, names, streams=streams) if is_code else _async_words(line, names)
        for line, is_code in parts
    ]


def _async_code(line: str, name: str, names: set[str], *, streams: bool) -> str:
    head = f"{'' if streams else 'async '}def {async_name(name)}("
    line = re.sub(rf"\bdef {name}\(", head, line)
    line = re.sub(r"\bIterator\[", "AsyncIterator[", line)
    line = _STREAMS.sub("self.runner.astream(", _RUNS.sub("await self.runner.arun(", line))

    def awaited(call: re.Match[str]) -> str:
        return f"await self.{async_name(call[1])}(" if call[1] in names else call[0]

    return _CALL.sub(awaited, line)


def _async_words(line: str, names: set[str]) -> str:
    return _QUOTED.sub(lambda word: f"`{async_name(word[1])}`" if word[1] in names else word[0], line)


def _remove(lines: list[str], method: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Remove a method, with the empty line before it."""
    first = min([method.lineno, *(each.lineno for each in method.decorator_list)]) - 1
    start = first - 1 if first and not lines[first - 1].strip() else first
    del lines[start : method.end_lineno]


def _formatted(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "-"]
    done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 - our own command.
    return done.stdout


def names_of(module: ModuleType) -> dict[str, set[str]]:
    """Return the methods of each class of a module that have an async one."""
    return {
        class_.__name__: {each for each in dir(class_) if hasattr(class_, async_name(each))}
        for class_ in vars(module).values()
        if isinstance(class_, type) and class_.__module__ == module.__name__
    }


def files() -> dict[Path, str]:
    """Return each file as it should be."""
    modules = {Path(str(each.__file__)): each for each in map(import_module, MODULES)}
    return {path: generated(path.read_text(encoding="utf-8"), names_of(modules[path])) for path in modules}


def main(arguments: Sequence[str]) -> int:
    """Write the files, or say which of them would change."""
    description = __doc__.partition("\n")[0]
    return write_or_check(_COMMAND, description, "async methods differ from the others", files, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
