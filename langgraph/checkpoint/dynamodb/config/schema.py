"""The JSON Schema of a configuration, for editors. `checkpointer.schema.json` is generated here."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from langgraph.checkpoint.dynamodb.config.model import CheckpointerConfig
from langgraph.checkpoint.dynamodb.config.types import BUILT_IN, find_type

_VARIABLE = {"type": "string", "pattern": r"\$\{"}


class _WithVariables(GenerateJsonSchema):
    """Allows `${NAME}` wherever a plain text would be invalid."""

    def int_schema(self, schema: Any) -> JsonSchemaValue:
        return _or_variable(super().int_schema(schema))

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        return _or_variable(super().float_schema(schema))

    def bool_schema(self, schema: Any) -> JsonSchemaValue:
        return _or_variable(super().bool_schema(schema))

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        return _or_variable(super().literal_schema(schema))

    def str_schema(self, schema: Any) -> JsonSchemaValue:
        text = super().str_schema(schema)
        return _or_variable(text) if "pattern" in text else text


def checkpointer_schema() -> str:
    """Return the schema of a file with a `checkpointer:` in it, and with anything else.

    Returns:
        JSON. Its definition `CheckpointerConfig` describes the section alone. Types of other packages are accepted.
    """
    section, definitions = _described(CheckpointerConfig)
    section["description"] = "Which checkpointer the agent has, and its options."
    # Editors propose the members of an enumeration, but other packages may register types of their own.
    section["properties"]["type"]["anyOf"] = [{"enum": list(BUILT_IN)}, {"type": "string"}]
    section["allOf"] = []
    for name in BUILT_IN:
        options, inner = _described(find_type(name).options)
        definitions |= inner | {name: options}
        section["allOf"].append(_where(name, has_to_be_there=bool(options.get("required"))))
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A file with the checkpointer of an agent",
        "type": "object",
        "properties": {"checkpointer": {"$ref": "#/$defs/CheckpointerConfig"}},
        "$defs": {"CheckpointerConfig": section, **definitions},
    }
    return json.dumps(schema, indent=2) + "\n"


def _described(model: type[BaseModel]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a model, and those that it refers to."""
    schema = model.model_json_schema(schema_generator=_WithVariables)
    return schema, schema.pop("$defs", {})


def _where(name: str, *, has_to_be_there: bool) -> dict[str, Any]:
    """Return the condition that ties the options to a type. A missing type means the default one."""
    is_default = name == CheckpointerConfig.model_fields["type"].default
    condition: dict[str, Any] = {"properties": {"type": {"const": name}}}
    options: dict[str, Any] = {"properties": {"config": {"$ref": f"#/$defs/{name}"}}}
    return {
        "if": condition if is_default else condition | {"required": ["type"]},
        "then": options | ({"required": ["config"]} if has_to_be_there else {}),
    }


def _or_variable(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {"anyOf": [schema, _VARIABLE]}
