"""A process that is forked while other threads use the saver: the child waits for none of them."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.codec import open_plain, seal_plain
from langgraph.checkpoint.dynamodb._runtime import fork
from tests.conftest import MakeSaver
from tests.support import forks
from tests.support.checkpoints import Conversation, noise, store, stored_values, thread_config
from tests.support.operations import Side, both_sides

if TYPE_CHECKING:
    from tools.engine import Engine

pytestmark = [pytest.mark.engines("dynamodb-local"), *forks.needs_fork]


@pytest.mark.parametrize("held", ["memory", "clients"])
def test_a_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held(
    make_saver: MakeSaver, held: str
) -> None:
    saver = make_saver()
    Conversation(saver, "parent").put(value=1)
    lock = saver.storage.cache._lock if held == "memory" else saver.transport._lock  # noqa: SLF001
    holds, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            forked.wait()

    def use() -> None:
        # Larger than what one request stores: the pool is needed too.
        config = store(saver, thread_config("child"), "1", {"big": os.urandom(800_000)})
        assert len(stored_values(saver, config)["big"]) == 800_000

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(forks.WAIT_SECONDS_MAX)
    try:
        assert forks.in_a_child(use) == 0, "the child failed, or waits for ever"
    finally:
        forked.set()
        thread.join()
    assert stored_values(saver, thread_config("parent")) == {"value": 1}


def test_a_child_remembers_nothing_of_its_parent(make_saver: MakeSaver) -> None:
    """The fork may have come while a thread was half-way through changing what is remembered."""
    saver = make_saver()
    config = Conversation(saver, "thread").put(value=1)
    place = ("thread#", config["configurable"]["checkpoint_id"])
    assert saver.storage.cache.checkpoint(*place) is not None

    def use() -> None:
        assert saver.storage.cache.checkpoint(*place) is None
        assert stored_values(saver, config) == {"value": 1}

    assert forks.in_a_child(use) == 0
    assert saver.storage.cache.checkpoint(*place) is not None


@pytest.mark.parametrize(
    "count", [pytest.param(2, marks=pytest.mark.share), pytest.param(20, marks=pytest.mark.search)]
)
@both_sides
def test_a_child_that_is_forked_beside_every_kind_of_call_makes_every_kind_of_call(
    make_unclosed: MakeSaver, side: Side, count: int
) -> None:
    with make_unclosed() as saver:
        assert forks.statuses_beside_calls(saver, side, count) == {0}, "a child failed, or waits for ever"


@both_sides
def test_a_fork_waits_for_whatever_a_call_imports(engine: Engine, table_name: str, side: Side) -> None:
    assert forks.imports_beside_forks(DynamoDBSaver, table_name, side, engine.environment()) == "True []"


@pytest.mark.parametrize("ends", [True, False], ids=["an import that ends", "one that does not end"])
def test_a_fork_waits_for_an_import_of_another_thread_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    began, forked = threading.Event(), threading.Event()
    if not ends:
        monkeypatch.setattr(fork, "_WAIT_SECONDS_MAX", 0.1)

    def load() -> None:
        with fork.without_forks():
            began.set()
            # As whoever holds an import's lock. The fork comes only afterwards, unless it has waited for too long.
            assert forked.wait(0.5 if ends else forks.WAIT_SECONDS_MAX) is not ends

    thread = threading.Thread(target=load)
    thread.start()
    assert began.wait(forks.WAIT_SECONDS_MAX)
    assert forks.in_a_child(lambda: fork.without_forks().__enter__()) == 0
    forked.set()
    thread.join()
    # The next one waits for nobody.
    assert forks.in_a_child(lambda: None) == 0


def test_who_forks_while_it_imports_waits_for_nobody() -> None:
    with fork.without_forks():
        assert forks.in_a_child(lambda: fork.without_forks().__enter__()) == 0
    assert forks.in_a_child(lambda: None) == 0


@pytest.mark.parametrize(
    "count", [pytest.param(20, marks=pytest.mark.share), pytest.param(100, marks=pytest.mark.search)]
)
def test_a_child_compresses_though_its_parent_was_compressing(count: int) -> None:
    """A dictionary of zstd has a lock, which other threads have most of the time here."""
    raw, ended = noise(200) + b"abc" * 1000, threading.Event()

    def compress() -> None:
        while not ended.is_set():
            assert open_plain(seal_plain(raw, "SK"), {"SK": {"S": "SK"}}) == raw

    threads = [threading.Thread(target=compress) for _ in range(3)]
    for each in threads:
        each.start()
    use = partial(seal_plain, raw, "SK")
    statuses = forks.exit_statuses([forks.fork(use) for _ in range(count)])
    ended.set()
    for each in threads:
        each.join()
    assert statuses == {0}
