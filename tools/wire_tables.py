"""`python -m tools.wire_tables`: writes the table of endpoints in `docs/wire.md`, and the API description that is kept.

`--check` writes nothing, and fails if they would change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic.fields import FieldInfo

from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.openapi import describe
from tools.generated import ROOT, write_or_check

PAGE = ROOT / "docs" / "wire.md"
# The signatures of the functions are the wire: whoever changes one sees here what a client has to do otherwise.
STORED = ROOT / "tests" / "fixtures" / "openapi.json"
_COMMAND = "python -m tools.wire_tables"
_START, _END = "<!-- endpoints -->", "<!-- end -->"


def _table() -> Iterator[str]:
    """Yield a row for each endpoint: the right that it needs, and the fields of its messages."""
    yield "| endpoint | right | request | response |"
    yield "|---|---|---|---|"
    for each in ENDPOINTS:
        response = each.answer.json_schema().get("properties", ())
        cells = (f"`{each.name}`", each.right or "", _fields(each.arguments.model_fields), _names(response))
        yield f"| {' | '.join(cells)} |"


def _fields(fields: Mapping[str, FieldInfo]) -> str:
    required = _names([name for name, field in fields.items() if field.is_required()])
    optional = _names([name for name, field in fields.items() if not field.is_required()])
    return "; ".join(filter(None, [required, optional and f"optional {optional}"]))


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def files() -> dict[Path, str]:
    """Return the files as they should be."""
    page, table = PAGE.read_text(encoding="utf-8"), "\n".join(_table())
    start = page.index(_START) + len(_START)
    # The version of a release is no part of the wire.
    described = describe(ENDPOINTS) | {"info": {}}
    return {
        PAGE: f"{page[:start]}\n\n{table}\n\n{page[page.index(_END, start) :]}",
        STORED: json.dumps(described, indent=1, sort_keys=True) + "\n",
    }


def main(arguments: Sequence[str]) -> int:
    """Write the page, or say that it would change."""
    description = __doc__.partition("\n")[0]
    return write_or_check(_COMMAND, description, "the wire has changed", files, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
