"""What a configuration accepts of each component, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CacheConfig,
    CheckpointerConfig,
    CheckpointerConfigurationError,
    StoreConfig,
)
from langgraph.checkpoint.dynamodb.config.model import ComponentConfig

CONFIGS: Mapping[str, type[ComponentConfig]] = {
    each.subject.name: each for each in (CheckpointerConfig, StoreConfig, CacheConfig)
}
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
def test_what_can_be_meant_is_accepted(component: str, section: Any) -> None:
    CONFIGS[component].load({"name": "agent", component: section})


@pytest.mark.parametrize(("component", "section"), REFUSED, ids=str)
def test_what_cannot_be_meant_is_refused(component: str, section: Any) -> None:
    with pytest.raises(CheckpointerConfigurationError):
        CONFIGS[component].load({component: section})


def test_every_option_has_a_description() -> None:
    for config in CONFIGS.values():
        for name in config.types:
            fields = config.find_type(name).options.model_fields
            assert not [each for each, field in fields.items() if not field.description]
