"""Print `table.yaml` with nothing but the table, which is what CloudFormation takes to adopt a table that exists.

`python -m infra.import_template > import.json`. An import may create nothing, so the policies and the outputs follow
with the next `make deploy`; docs/operations.md, "Adopting a table", has the steps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Reads the short forms of the intrinsic functions (`!Ref x`) as their long forms."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    if isinstance(node, yaml.MappingNode):
        return {name: loader.construct_mapping(node, deep=True)}
    if not isinstance(node, yaml.ScalarNode):
        raise TypeError(f"{name} holds neither a list, nor a mapping, nor a value")
    value = loader.construct_scalar(node)
    return {name: value.split(".", 1) if name == "Fn::GetAtt" else value}


_Loader.add_multi_constructor("!", _intrinsic)


def read_template(path: Path) -> dict[str, Any]:
    """Read a template, with the short forms of the intrinsic functions (`!Ref x`) as their long forms.

    Args:
        path: Where it is.

    Returns:
        The template as JSON could hold it.
    """
    # The loader is a safe one: it adds only the tags of CloudFormation to SafeLoader.
    template: dict[str, Any] = yaml.load(path.read_text(), Loader=_Loader)  # noqa: S506
    return template


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
