"""Print `table.yaml` with nothing but the table, which is what CloudFormation takes to adopt a table that exists.

`python -m infra.import_template > import.json`. An import may create nothing, so the policies and the outputs follow
with the next `make deploy`; docs/move-table.md, "Adopt a table", has the steps.
"""

import json
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.dynamodb.cli.printed import parse_template


def read_template(path: Path) -> dict[str, Any]:
    """Read a template, with the short forms of the intrinsic functions (`!Ref x`) as their long forms.

    Args:
        path: Where it is.

    Returns:
        The template as JSON could hold it.
    """
    return parse_template(path.read_text(encoding="utf-8"))


def import_template() -> str:
    """Reduce the template to its table.

    Returns:
        The template as JSON, with the same parameters, rules and conditions, the table, and nothing else.
    """
    template = read_template(Path(__file__).with_name("table.yaml"))
    template["Resources"] = {"Table": template["Resources"]["Table"]}
    del template["Outputs"]
    return json.dumps(template, indent=2)


if __name__ == "__main__":
    sys.stdout.write(import_template() + "\n")
