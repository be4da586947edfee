"""What only stores and node caches have of a configuration: sections of their own, ttls, and an index."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from langgraph.checkpoint.dynamodb import (
    CacheConfig,
    CheckpointerConfig,
    CheckpointerConfigurationError,
    StoreConfig,
    create_cache,
    create_store,
)
from tests.support.options import embed
from tools.engine import Engine

# What is configured is the same for every engine: an address.
pytestmark = pytest.mark.engines("dynamodb-local")

ADA = ("memories", "ada")
Section = Mapping[str, Any]


def _of(engine: Engine) -> dict[str, Any]:
    return {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}


async def test_what_a_store_keeps_expires_as_configured(
    engine: Engine, table_name: str, tmp_path: Path
) -> None:
    """That postgres does so too follows from the same options and the same call."""
    table = {**_of(engine), "table_name": table_name}
    for name, where in {"sqlite": {"db_file": str(tmp_path / "x.db")}, "dynamodb": table}.items():
        section = {"type": name, "config": {**where, "ttl": {"default_ttl": 5.5}}}
        with create_store(section) as store:
            assert store.ttl_config is not None
            assert store.ttl_config["default_ttl"] == 5.5
            assert store.ttl_config["refresh_on_read"]
            sweeper = getattr(store, "_ttl_sweeper_thread", None)
        assert (sweeper is None) == (name == "dynamodb")
        assert sweeper is None or not sweeper.is_alive()
        async with create_store(section) as store:
            task = getattr(store, "_ttl_sweeper_task", None)
        assert (task is None) == (name == "dynamodb")
        assert task is None or task.done()


async def test_a_table_is_made_where_that_is_asked_for(engine: Engine, client: Any) -> None:
    config = {**_of(engine), "table_name": "made-for-memories", "setup": True}
    with create_store({"type": "dynamodb", "config": config}) as store:
        assert store.get(ADA, "food") is None
    async with create_cache({"type": "dynamodb", "config": config}) as cache:
        assert await cache.aget([(ADA, "key")]) == {}
    client.delete_table(TableName="made-for-memories")


# Sources and mistakes


def _error(config: type[StoreConfig | CacheConfig], source: Any) -> str:
    with pytest.raises(CheckpointerConfigurationError) as caught:
        config.load(source)
    return str(caught.value)


def test_a_mistake_is_named_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("store:\n  type: dynamodb\n  config:\n    table: a\n    index: {dims: 3}\n")
    assert sorted(line.split(": ")[0] for line in _error(StoreConfig, file).splitlines()[1:]) == [
        f"  {file}, store.config.{name}" for name in ("index", "table", "table_name")
    ]
    assert _error(StoreConfig, CheckpointerConfig()) == (
        "a store cannot be configured by a CheckpointerConfig; give a StoreConfig, a dict, the path of a YAML file,"
        " or nothing for the environment"
    )
    assert _error(StoreConfig, None).startswith(
        "no configuration was given, and LANGGRAPH_STORE_TYPE is not set in the environment; say which type of store"
    )


# Options


class Embeddings(DeterministicFakeEmbedding):
    """Embeddings that can be made without arguments."""

    size: int = 2


@pytest.mark.parametrize(
    "embed_function", [embed, Embeddings, Embeddings()], ids=["function", "class", "object"]
)
def test_a_store_embeds_by_an_object(engine: Engine, table_name: str, embed_function: Any) -> None:
    index = {"dims": 2, "embed_function": embed_function, "fields": "text, more"}
    where = {**_of(engine), "table_name": table_name}
    sections: dict[str, dict[str, Any]] = {"memory": {}, "dynamodb": where}
    for name, config in sections.items():
        with create_store({"type": name, "config": {**config, "index": index}}) as store:
            store.put(ADA, "short", {"text": "a", "other": "is not embedded"})
            store.put(ADA, "long", {"text": "a" * 50})
            assert store.search(ADA, query="a" * 50)[0].key == "long"


def test_a_model_is_named_as_langgraph_names_it() -> None:
    config = StoreConfig(type="memory", config={"index": {"dims": 2, "embed": "openai:small"}})
    assert config.config.configs()["index"] == {"dims": 2, "embed": "openai:small"}
    with (
        pytest.raises(
            CheckpointerConfigurationError, match=r"config.index.embed_function: names a value of type str"
        ),
        create_store({"type": "memory", "config": {"index": {"dims": 2, "embed_function": "os:sep"}}}),
    ):
        pass


def test_the_distance_is_that_of_the_configuration() -> None:
    index = {"dims": 2, "embed_function": embed, "distance_type": "l2"}
    for name, where in {
        "postgres": {"connection_string": "postgresql://localhost/memories"},
        "dynamodb": {"table_name": "a"},
    }.items():
        config = StoreConfig(type=name, config={**where, "index": index})
        assert config.config.configs()["index"]["distance_type"] == "l2"
        assert "index.distance_type" in _error(
            StoreConfig, {"type": name, "config": {**where, "index": {**index, "distance_type": "near"}}}
        )


class Compares:
    """An engine that can be made without arguments."""

    def search(self, *_: Any, **__: Any) -> list[Any]:
        """Find nothing."""
        return []

    put = delete = search


def test_a_file_says_who_compares_embeddings() -> None:
    index: dict[str, Any] = {"dims": 2, "embed_function": embed}

    def options(**given: Any) -> Section:
        return {"type": "dynamodb", "config": {"table_name": "a", "index": {**index, **given}}}

    def search(**given: Any) -> Any:
        return StoreConfig.load(options(**given)).config.configs()["index"].get("search")

    assert search() is None
    assert isinstance(search(engine=Compares), Compares)
