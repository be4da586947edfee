"""The JSON Schema that is published is that of the code, and says of a file what the code says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from langgraph.checkpoint.dynamodb import (
    CacheConfig,
    CheckpointerConfig,
    CheckpointerConfigurationError,
    StoreConfig,
)
from langgraph.checkpoint.dynamodb.config.types import CACHES, CHECKPOINTERS, STORES, TypeRegistry

PUBLISHED = (
    resources.files("langgraph.checkpoint.dynamodb.config")
    .joinpath("checkpointer.schema.json")
    .read_text(encoding="utf-8")
)


def test_the_package_prints_it() -> None:
    command = [sys.executable, "-m", "langgraph.checkpoint.dynamodb", "schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert printed == PUBLISHED


def test_every_option_has_a_description() -> None:
    definitions = json.loads(PUBLISHED)["$defs"]
    for types in (CHECKPOINTERS, STORES, CACHES):
        assert {f"{types.component}.{name}" for name in types.names} < definitions.keys()
    options = [(name, option) for name, each in definitions.items() for option in each["properties"].items()]
    assert len(options) > 30
    assert not [f"{name}.{option}" for name, (option, schema) in options if not schema.get("description")]


TABLE = {"table_name": "threads"}
KEY = {"file": "/run/key"}


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"type": "memory"},
        {"type": "sqlite", "config": {"db_file": "x.db"}},
        {"type": "postgres", "config": {"connection_string": "postgresql:///x"}},
        {"type": "dynamodb", "config": TABLE},
        {
            "type": "dynamodb",
            "config": {**TABLE, "ttl_seconds": 3, "serde": {"allowed_msgpack_modules": ["a:B"]}},
        },
        {
            "type": "dynamodb",
            "config": {**TABLE, "serde": "copy:copy", "client_config": "copy:copy"},
        },
        {"type": "dynamodb", "config": {**TABLE, "encryption_key": KEY, "endpoint_url": "http://localhost"}},
    ],
    ids=str,
)
def test_both_accept(section: dict[str, Any]) -> None:
    file = {"name": "agent", "checkpointer": section}
    assert not list(Draft202012Validator(json.loads(PUBLISHED)).iter_errors(file))
    CheckpointerConfig.load(file)


@pytest.mark.parametrize(
    "section",
    [
        "memory",
        {"typ": "memory"},
        {"type": "redis"},
        {"type": 3},
        {"config": TABLE},
        {"type": "memory", "config": TABLE},
        {"type": "sqlite"},
        {"type": "sqlite", "config": {}},
        {"type": "sqlite", "config": {"db_file": "x", "pipeline": True}},
        {"type": "postgres", "config": {"connection_string": 3}},
        {"type": "dynamodb", "config": {"ttl_seconds": 3}},
        {"type": "dynamodb", "config": {**TABLE, "ttl_seconds": 0}},
        {"type": "dynamodb", "config": {**TABLE, "ttl_seconds": True}},
        {"type": "dynamodb", "config": {**TABLE, "ttl_seconds": 40_000_000_000}},
        {"type": "dynamodb", "config": {**TABLE, "endpoint_url": "localhost:8000"}},
        {"type": "dynamodb", "config": {**TABLE, "serde": "json"}},
        {"type": "dynamodb", "config": {**TABLE, "encryption_key": {}}},
        {"type": "dynamodb", "config": {**TABLE, "encryption_key": {**KEY, "environment": "KEY"}}},
        {"type": "dynamodb", "config": {**TABLE, "encryption_key": {**KEY, "encoding": "rot13"}}},
        {"type": "dynamodb", "config": {**TABLE, "encryption_key": {"secret_arn": "my-secret"}}},
    ],
    ids=str,
)
def test_both_refuse(section: Any) -> None:
    file = {"checkpointer": section}
    assert list(Draft202012Validator(json.loads(PUBLISHED)).iter_errors(file))
    with pytest.raises(CheckpointerConfigurationError):
        CheckpointerConfig.load(file)


# What stands in them may be a variable, and not they themselves.
MAPPINGS = ("encryption_key", "owner_key", "auth", "headers", "index", "ttl")


@pytest.mark.parametrize("types", [CHECKPOINTERS, STORES, CACHES], ids=lambda types: types.component)
def test_a_variable_may_stand_for_every_value(types: TypeRegistry) -> None:
    validator = Draft202012Validator(json.loads(PUBLISHED))
    for name in types.names:
        config = {each: "${A}" for each in types.find(name).options.model_fields if each not in MAPPINGS}
        section = {"type": name, "config": config}
        assert not list(validator.iter_errors({types.component: section}))


INDEX = {"dims": 3, "embed": "openai:text-embedding-3-small"}


@pytest.mark.parametrize(
    ("component", "section", "accepted"),
    [
        ("store", {"type": "memory", "config": {"index": INDEX}}, True),
        ("store", {"type": "memory", "config": {"ttl": {"default_ttl": 3}}}, False),
        ("store", {"type": "sqlite", "config": {"db_file": "x.db", "ttl": {"default_ttl": 0.5}}}, True),
        ("store", {"type": "sqlite", "config": {"ttl": {"default_ttl": 0.5}}}, False),
        ("store", {"type": "dynamodb", "config": {**TABLE, "index": INDEX}}, True),
        ("store", {"type": "dynamodb", "config": {**TABLE, "index": {"dims": 3}}}, False),
        ("store", {"type": "dynamodb", "config": {**TABLE, "index": {**INDEX, "embed": "openai"}}}, False),
        (
            "store",
            {"type": "dynamodb", "config": {**TABLE, "index": {**INDEX, "embed_function": "a:b"}}},
            False,
        ),
        ("store", {"type": "dynamodb", "config": {**TABLE, "ttl_seconds": 3}}, False),
        ("cache", {"type": "memory"}, True),
        ("cache", {"type": "dynamodb", "config": {**TABLE, "prefix": ["acme"]}}, True),
        ("cache", {"type": "dynamodb", "config": {**TABLE, "search_bytes_max": 3}}, False),
    ],
    ids=str,
)
def test_both_agree_on_stores_and_caches(component: str, section: dict[str, Any], *, accepted: bool) -> None:
    file = {component: section}
    assert Draft202012Validator(json.loads(PUBLISHED)).is_valid(file) == accepted
    config = StoreConfig if component == "store" else CacheConfig
    if accepted:
        config.load(file)
    else:
        with pytest.raises(CheckpointerConfigurationError):
            config.load(file)
