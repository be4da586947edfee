"""`python -m tools.page_tables`: writes tables of pages that follow from the code, and the tests' API description.

`docs/wire.md` has the endpoints, `docs/design.md` the attributes of each item, and `docs/encrypt.md` what they show.

`--check` writes nothing, and fails if they would change.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from langgraph.checkpoint.dynamodb._format.attributes import ATTRIBUTES, Holds
from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.openapi import describe
from tools.generated import ROOT, write_or_check

WIRE, DESIGN, ENCRYPT = (ROOT / "docs" / f"{name}.md" for name in ("wire", "design", "encrypt"))
# The signatures of the functions are the wire: whoever changes one sees here what a client has to do otherwise.
STORED = ROOT / "tests" / "fixtures" / "openapi.json"
_COMMAND = "python -m tools.page_tables"
_END = "<!-- end -->"
# The beginning of a row of a table of items: the kind of an item, PK and SK. Its attributes follow.
_ITEM = re.compile(r"^(\| ([a-z ]+) \|[^|]*\|[^|]*\|).*$", re.MULTILINE)


def _attributes() -> Iterator[str]:
    """Yield a row for each kind of attributes: what its attributes hold, and their names."""
    yield "| what it holds | attributes |"
    yield "|---|---|"
    for each in Holds:
        names = (name for row in ATTRIBUTES.values() for name, (_, holds) in row.items() if holds is each)
        # There are four special writes.
        found = {re.sub(r"_\d", "_1", name) for name in names}
        yield f"| {each.value} | {_names(sorted(found))} |"


def _with_attributes(text: str) -> str:
    """Return a page with the attributes of each item in the last cell of its row."""
    kinds = {found[2] for found in _ITEM.finditer(text)}
    if absent := ATTRIBUTES.keys() - kinds:
        raise LookupError(f"docs/design.md has no row for a {min(absent)}")
    return _ITEM.sub(
        lambda found: f"{found[1]} {_names(ATTRIBUTES[found[2]])} |" if found[2] in ATTRIBUTES else found[0],
        text,
    )


def _endpoints() -> Iterator[str]:
    """Yield a row for each right: the endpoints that need it."""
    yield "| right | endpoints |"
    yield "|---|---|"
    for right in dict.fromkeys(each.right for each in ENDPOINTS):
        names = _names(each.name for each in ENDPOINTS if each.right == right)
        yield f"| {right or 'that of each operation'} | {names} |"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _with_table(page: Path, name: str, rows: Iterable[str]) -> str:
    """Return a page with the table between its markers as it should be."""
    text, start, table = page.read_text(encoding="utf-8"), f"<!-- {name} -->", "\n".join(rows)
    begin = text.index(start) + len(start)
    return f"{text[:begin]}\n\n{table}\n\n{text[text.index(_END, begin) :]}"


def files() -> dict[Path, str]:
    """Return the files as they should be."""
    # The version of a release is no part of the wire.
    described = describe(ENDPOINTS) | {"info": {}}
    return {
        WIRE: _with_table(WIRE, "endpoints", _endpoints()),
        DESIGN: _with_attributes(DESIGN.read_text(encoding="utf-8")),
        ENCRYPT: _with_table(ENCRYPT, "attributes", _attributes()),
        STORED: json.dumps(described, indent=1, sort_keys=True) + "\n",
    }


def main(arguments: Sequence[str]) -> int:
    """Write the page, or say that it would change."""
    description = __doc__.partition("\n")[0]
    return write_or_check(_COMMAND, description, "the wire or the attributes have changed", files, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
