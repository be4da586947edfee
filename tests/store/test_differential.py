"""The same calls on this store and on LangGraph's memory and SQLite stores give the same, but where a test says why.

SQLite has times of whole seconds, and joins labels by dots, which LangGraph refuses in labels. So memories are put with
the order of their numbers checked apart, and results are compared without times.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langgraph.store.dynamodb.batch import Batch, run_batch
from tests.store.conftest import storage_of
from tests.support.harness import Harness

labels = st.sampled_from(["a", "b", "c:d", "é", "a_b", "x"])
namespaces = st.lists(labels, min_size=1, max_size=4).map(tuple)
prefixes = st.lists(labels, max_size=3).map(tuple)
keys = st.sampled_from(["k", "l", "k/#", "K"])
# Numbers compare with numbers only here; memory raises for others, and SQLite compares texts.
values = st.fixed_dictionaries(
    {"n": st.integers(-3, 3) | st.sampled_from([0.5, -1.5]), "t": st.sampled_from(["x", "y", "z z"])},
    optional={"nested": st.fixed_dictionaries({"a": st.integers(0, 1)})},
)
# Of a missing key memory says that it is not equal, as this store does; SQLite says nothing. So no filter asks for one.
filters = st.one_of(
    st.none(),
    st.fixed_dictionaries({"t": st.sampled_from(["x", "y"])}),
    st.fixed_dictionaries({"n": st.integers(-3, 3)}),
    st.fixed_dictionaries({
        "n": st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$ne"]), st.integers(-2, 2), min_size=1)
    }),
)  # fmt: skip
paths = st.lists(labels | st.just("*"), min_size=1, max_size=3).map(tuple)
conditions = st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), paths), max_size=2
).map(tuple)  # fmt: skip
# `builds` would make up what has a default, too.
puts = st.tuples(namespaces, keys, st.none() | values).map(lambda given: PutOp(*given))
lists = st.tuples(conditions, st.none() | st.integers(1, 3), st.integers(0, 5), st.integers(0, 2)).map(
    lambda given: ListNamespacesOp(*given)
)
gets = st.tuples(namespaces, keys).map(lambda given: GetOp(*given))
# Ties of times are in any order, so a search is for all.
searches = st.tuples(prefixes, filters).map(lambda given: SearchOp(*given, limit=1000))
batches = st.lists(st.lists(puts | gets | searches | lists, min_size=1, max_size=6), min_size=1, max_size=5)


@pytest.fixture
def others() -> Iterator[Callable[[str], BaseStore]]:
    """Give a function that opens a new store of LangGraph's, by its name."""
    with ExitStack() as opened:

        def make(name: str) -> BaseStore:
            if name == "memory":
                return InMemoryStore()
            connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            store = SqliteStore(opened.enter_context(closing(connection)))
            store.setup()
            return store

        yield make


def seen(batch: list[Any], results: Any, name: str) -> list[Any]:
    """Return results without their times and their order in time."""
    # Memory lists a namespace that has been emptied, and this store does not.
    lists_empty = name == "memory"
    return [
        None if lists_empty and isinstance(op, ListNamespacesOp) else _seen(result)
        for op, result in zip(batch, results, strict=True)
    ]


def _seen(result: Any) -> Any:
    if isinstance(result, list):
        if result and isinstance(result[0], tuple):
            return result
        return sorted((each.namespace, each.key, repr(sorted(each.value.items()))) for each in result)
    return None if result is None else (result.namespace, result.key, result.value)


def compare(run: Callable[[list[Any]], Any], other: BaseStore, name: str, batches: list[list[Any]]) -> None:
    """Run batches on both stores, and raise where they differ."""
    everything: list[list[Any]] = [[SearchOp(prefix, limit=1000)] for prefix in ((), ("a",), ("a", "b"))]
    for batch in [*batches, *everything]:
        assert seen(batch, run(batch), name) == seen(batch, other.batch(batch), name)


@pytest.mark.parametrize("name", ["memory", "sqlite"])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=batches)
def test_batches_give_the_same(
    others: Callable[[str], BaseStore], name: str, batches: list[list[Any]]
) -> None:
    harness = Harness()
    storage = storage_of(harness)

    def run(batch: list[Any]) -> Any:
        return harness.run(run_batch(storage, None, Batch(None, batch))).results

    compare(run, others(name), name, batches)
