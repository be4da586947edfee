"""Let mypy check the Python blocks of README and `docs/`: `python -m tools.documented_code`, a part of `make types`."""

import re
import subprocess
import symtable
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a block may use without saying where it is from.
GIVEN = {
    "DynamoDBSaver": "from langgraph.checkpoint.dynamodb import DynamoDBSaver",
    "DynamoDBStore": "from langgraph.store.dynamodb import DynamoDBStore",
    "Event": "from langgraph.checkpoint.dynamodb.observe import Event",
    "Any": "from typing import Any",
    "saver": "from langgraph.checkpoint.dynamodb import DynamoDBSaver\nsaver: DynamoDBSaver",
    "graph": "from langgraph.pregel import Pregel\ngraph: Pregel[typing.Any, typing.Any]",
    "other": "from langgraph.store.dynamodb import DynamoDBStore\nother: DynamoDBStore",
    "builder": "from langgraph.graph import StateGraph\nbuilder: StateGraph[typing.Any, typing.Any]",
    "store": "from langgraph.store.dynamodb import DynamoDBStore\nstore: DynamoDBStore",
    "agent": "from langgraph.pregel import Pregel\nagent: Pregel[typing.Any, typing.Any]",
    "inputs": "inputs: dict[str, typing.Any]",
    "namespace": "namespace: tuple[str, ...]",
    "key": "key: str",
    "target": "from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint\ntarget: SaverEndpoint",
    "answer": "def answer(state: typing.Any) -> typing.Any: ...",
    "on_event": "def on_event(event: object) -> None: ...",
    # The CDK is not installed here. A test compares its block with the template.
    **{name: f"{name}: typing.Any" for name in ("CfnInclude", "iam", "role", "self")},
}


def _scopes(scope: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield scope
    for each in scope.get_children():
        yield from _scopes(each)


def module_of(block: str) -> str:
    """Return a block as a module, with what it uses and does not define in front of it."""
    top = symtable.symtable(block, "a block", "exec")
    used = {each.get_name() for scope in _scopes(top) for each in scope.get_symbols() if each.is_global()}
    bound = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
    return "\n".join(
        ["import typing", *(GIVEN[name] for name in sorted((used - bound) & GIVEN.keys())), block]
    )


def main() -> int:
    """Check the blocks, with the cache of everything else; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
            for number, block in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8"))):
                name = f"{page.stem.replace('-', '_')}_{number}.py"
                Path(folder, name).write_text(module_of(block), encoding="utf-8")
        return subprocess.run([sys.executable, "-m", "mypy", folder], cwd=ROOT, check=False).returncode  # noqa: S603 - our own command.


if __name__ == "__main__":
    sys.exit(main())
