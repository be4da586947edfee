"""The JSON Schema says of a file what the code says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from langgraph.checkpoint.dynamodb import (
    CacheConfig,
    CheckpointerConfig,
    CheckpointerConfigurationError,
    StoreConfig,
)
from langgraph.checkpoint.dynamodb.config.model import ComponentConfig
from langgraph.checkpoint.dynamodb.config.schema import checkpointer_schema

SCHEMA = json.loads(checkpointer_schema())
VALIDATOR = Draft202012Validator(SCHEMA)
CONFIGS: Mapping[str, type[ComponentConfig]] = {
    each.subject.name: each for each in (CheckpointerConfig, StoreConfig, CacheConfig)
}


def test_the_package_prints_it() -> None:
    command = [sys.executable, "-m", "langgraph.checkpoint.dynamodb", "schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert json.loads(printed) == SCHEMA


def test_every_option_has_a_description() -> None:
    definitions = SCHEMA["$defs"]
    for component, config in CONFIGS.items():
        assert {f"{component}.{name}" for name in config.types} < definitions.keys()
    options = [(name, option) for name, each in definitions.items() for option in each["properties"].items()]
    assert len(options) > 30
    assert not [f"{name}.{option}" for name, (option, schema) in options if not schema.get("description")]


TABLE: dict[str, Any] = {"table_name": "threads"}
KEY = {"file": "/run/key"}


INDEX = {"dims": 3, "embed": "openai:text-embedding-3-small"}
_RIGHT_OF_CHECKPOINTERS: Sequence[dict[str, Any]] = [
    {"ttl_seconds": 3, "serde": {"allowed_msgpack_modules": ["a:B"]}},
    {"serde": "copy:copy", "client_config": "copy:copy"},
    {"encryption_key": KEY, "endpoint_url": "http://localhost"},
]
ACCEPTED: Sequence[tuple[str, Any]] = [
    ("checkpointer", {}),
    ("checkpointer", {"type": "memory"}),
    ("checkpointer", {"type": "sqlite", "config": {"db_file": "x.db"}}),
    ("checkpointer", {"type": "postgres", "config": {"connection_string": "postgresql:///x"}}),
    ("checkpointer", {"type": "dynamodb", "config": TABLE}),
    *(("checkpointer", {"type": "dynamodb", "config": TABLE | each}) for each in _RIGHT_OF_CHECKPOINTERS),
    ("store", {"type": "memory", "config": {"index": INDEX}}),
    ("store", {"type": "sqlite", "config": {"db_file": "x.db", "ttl": {"default_ttl": 0.5}}}),
    ("store", {"type": "dynamodb", "config": {**TABLE, "index": INDEX}}),
    ("cache", {"type": "memory"}),
    ("cache", {"type": "dynamodb", "config": {**TABLE, "prefix": ["acme"]}}),
]
_WRONG_OF_CHECKPOINTERS: Sequence[dict[str, Any]] = [
    {"ttl_seconds": 0},
    {"ttl_seconds": True},
    {"ttl_seconds": 40_000_000_000},
    {"endpoint_url": "localhost:8000"},
    {"serde": "json"},
    {"encryption_key": {}},
    {"encryption_key": {**KEY, "environment": "KEY"}},
    {"encryption_key": {**KEY, "encoding": "rot13"}},
    {"encryption_key": {"secret_arn": "my-secret"}},
]
_WRONG_OF_STORES: Sequence[dict[str, Any]] = [
    {"index": {"dims": 3}},
    {"index": {**INDEX, "embed": "openai"}},
    {"index": {**INDEX, "embed_function": "a:b"}},
    {"ttl_seconds": 3},
]
REFUSED: Sequence[tuple[str, Any]] = [
    ("checkpointer", "memory"),
    ("checkpointer", {"typ": "memory"}),
    ("checkpointer", {"type": "redis"}),
    ("checkpointer", {"type": 3}),
    ("checkpointer", {"config": TABLE}),
    ("checkpointer", {"type": "memory", "config": TABLE}),
    ("checkpointer", {"type": "sqlite"}),
    ("checkpointer", {"type": "sqlite", "config": {}}),
    ("checkpointer", {"type": "sqlite", "config": {"db_file": "x", "pipeline": True}}),
    ("checkpointer", {"type": "postgres", "config": {"connection_string": 3}}),
    ("checkpointer", {"type": "dynamodb", "config": {"ttl_seconds": 3}}),
    *(("checkpointer", {"type": "dynamodb", "config": TABLE | each}) for each in _WRONG_OF_CHECKPOINTERS),
    ("store", {"type": "memory", "config": {"ttl": {"default_ttl": 3}}}),
    ("store", {"type": "sqlite", "config": {"ttl": {"default_ttl": 0.5}}}),
    *(("store", {"type": "dynamodb", "config": TABLE | each}) for each in _WRONG_OF_STORES),
    ("cache", {"type": "dynamodb", "config": {**TABLE, "search_bytes_max": 3}}),
]


@pytest.mark.parametrize(("component", "section"), ACCEPTED, ids=str)
def test_both_accept(component: str, section: Any) -> None:
    file = {"name": "agent", component: section}
    assert VALIDATOR.is_valid(file)
    CONFIGS[component].load(file)


@pytest.mark.parametrize(("component", "section"), REFUSED, ids=str)
def test_both_refuse(component: str, section: Any) -> None:
    file = {component: section}
    assert not VALIDATOR.is_valid(file)
    with pytest.raises(CheckpointerConfigurationError):
        CONFIGS[component].load(file)


# What stands in them may be a variable, and not they themselves.
MAPPINGS = ("encryption_key", "owner_key", "auth", "headers", "index", "ttl")


@pytest.mark.parametrize("component", CONFIGS)
def test_a_variable_may_stand_for_every_value(component: str) -> None:
    for name in CONFIGS[component].types:
        fields = CONFIGS[component].find_type(name).options.model_fields
        config = {each: "${A}" for each in fields if each not in MAPPINGS}
        assert VALIDATOR.is_valid({component: {"type": name, "config": config}})
