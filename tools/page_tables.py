"""`python -m tools.page_tables`: writes tables of pages that follow from the code, and the tests' API description.

`docs/wire.md` has the endpoints, and `docs/encrypt.md` what each stored attribute shows.

`--check` writes nothing, and fails if they would change.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic.fields import FieldInfo

from langgraph.checkpoint.dynamodb._format.attributes import ATTRIBUTES, Holds
from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.openapi import describe
from tools.generated import ROOT, write_or_check

WIRE, ENCRYPT = ROOT / "docs" / "wire.md", ROOT / "docs" / "encrypt.md"
# The signatures of the functions are the wire: whoever changes one sees here what a client has to do otherwise.
STORED = ROOT / "tests" / "fixtures" / "openapi.json"
_COMMAND = "python -m tools.page_tables"
_END = "<!-- end -->"


def _attributes() -> Iterator[str]:
    """Yield a row for each kind of attributes: what its attributes hold, and their names."""
    yield "| what it holds | attributes |"
    yield "|---|---|"
    for each in Holds:
        names = (name for row in ATTRIBUTES.values() for name, (_, holds) in row.items() if holds is each)
        # There are four special writes.
        found = {re.sub(r"_\d", "_1", name) for name in names}
        yield f"| {each.value} | {_names(sorted(found))} |"


def _endpoints() -> Iterator[str]:
    """Yield a row for each endpoint: the right that it needs, and the fields of its messages."""
    yield "| endpoint | right | request | response |"
    yield "|---|---|---|---|"
    for each in ENDPOINTS:
        response = each.response.json_schema().get("properties", ())
        cells = (f"`{each.name}`", each.right or "", _fields(each.arguments.model_fields), _names(response))
        yield f"| {' | '.join(cells)} |"


def _fields(fields: Mapping[str, FieldInfo]) -> str:
    required = _names([name for name, field in fields.items() if field.is_required()])
    optional = _names([name for name, field in fields.items() if not field.is_required()])
    return "; ".join(filter(None, [required, optional and f"optional {optional}"]))


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
        ENCRYPT: _with_table(ENCRYPT, "attributes", _attributes()),
        STORED: json.dumps(described, indent=1, sort_keys=True) + "\n",
    }


def main(arguments: Sequence[str]) -> int:
    """Write the page, or say that it would change."""
    description = __doc__.partition("\n")[0]
    return write_or_check(_COMMAND, description, "the wire or the attributes have changed", files, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
