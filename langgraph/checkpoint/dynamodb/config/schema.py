"""The JSON Schema of a configuration, for editors."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from langgraph.checkpoint.dynamodb.config.model import (
    CacheConfig,
    CheckpointerConfig,
    ComponentConfig,
    StoreConfig,
)

_VARIABLE = {"type": "string", "pattern": r"\$\{"}
# A list and a tuple may be a text, which is split at its commas.
_CHECKED = {"int", "float", "bool", "literal", "list", "tuple"}


class _WithVariables(GenerateJsonSchema):
    """Allows `${NAME}` wherever a plain text would be invalid."""

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        made = super().generate_inner(schema)
        is_checked = schema["type"] in _CHECKED or (schema["type"] == "str" and "pattern" in made)
        return {"anyOf": [made, _VARIABLE]} if is_checked else made


def checkpointer_schema() -> str:
    """Return the schema of a file with a `checkpointer:`, a `store:` and a `cache:` in it, and with anything else.

    Returns:
        JSON. Its definitions `CheckpointerConfig`, `StoreConfig` and `CacheConfig` describe one section each.
    """
    sections: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for config in (CheckpointerConfig, StoreConfig, CacheConfig):
        sections[config.subject.name] = {"$ref": f"#/$defs/{config.__name__}"}
        definitions |= _definitions(config)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A file with the checkpointer, the store and the node cache of an agent",
        "type": "object",
        "properties": sections,
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"


def _definitions(config: type[ComponentConfig]) -> dict[str, Any]:
    """Return the schema of a section and of the options of its types, by their names."""
    component = config.subject.name
    section, definitions = _described(config)
    section["description"] = f"Which {component} the agent has, and its options."
    # A variable may name the type.
    section["properties"]["type"]["anyOf"] = [{"enum": list(config.types)}, _VARIABLE]
    section["allOf"] = []
    for name in config.types:
        options, inner = _described(config.find_type(name).options)
        definitions |= inner | {f"{component}.{name}": options}
        section["allOf"].append(_where(component, name, has_to_be_there=bool(options.get("required"))))
    return {config.__name__: section} | definitions


def _described(model: type[BaseModel]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a model, and those that it refers to."""
    schema = model.model_json_schema(schema_generator=_WithVariables)
    return schema, schema.pop("$defs", {})


def _where(component: str, name: str, *, has_to_be_there: bool) -> dict[str, Any]:
    """Return the condition that ties the options to a type. A missing type means the default one."""
    is_default = name == ComponentConfig.model_fields["type"].default
    condition: dict[str, Any] = {"properties": {"type": {"const": name}}}
    options: dict[str, Any] = {"properties": {"config": {"$ref": f"#/$defs/{component}.{name}"}}}
    return {
        "if": condition if is_default else condition | {"required": ["type"]},
        "then": options | ({"required": ["config"]} if has_to_be_there else {}),
    }
