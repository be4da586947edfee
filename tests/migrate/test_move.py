"""Threads are moved whole, from every saver and back, and their conversations go on."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, Status, TableEndpoint, migrate
from langgraph.checkpoint.dynamodb.migrate.amazon import AmazonEndpoint
from langgraph.checkpoint.dynamodb.migrate.sqlite import SqliteEndpoint
from tests.migrate.conftest import OTHERS
from tests.migrate.threads import EVERY, WAITING, answer, begin, config, statuses
from tests.support.graphs import Saver

pytestmark = pytest.mark.engines("dynamodb-local")
_IDS = ("checkpoint_ns", "checkpoint_id")
# Each kind of thread is moved from one saver at least, and from Postgres all.
THREADS = {
    AmazonEndpoint: ["delta"],
    SqliteEndpoint: ["approvals", "fork"],
    SaverEndpoint: ["fan out", "persistent subgraphs"],
}
with_each = pytest.mark.parametrize("other", OTHERS, indirect=True)


def seen(saver: Saver, thread_id: str) -> list[CheckpointTuple]:
    """Return what a saver gives of a thread, in an order that does not depend on it."""
    found = [
        each._replace(pending_writes=sorted(each.pending_writes or [], key=lambda write: write[:2]))
        for each in saver.list(config(thread_id))
    ]
    return sorted(found, key=lambda each: [each.config["configurable"][name] for name in _IDS])


@with_each
def test_all_that_a_saver_has_is_moved_and_goes_on(other: SaverEndpoint, table: TableEndpoint) -> None:
    source, target = other.saver, table.saver
    threads = begin(source, THREADS.get(type(other), EVERY))
    assert sorted(other.thread_ids()) == threads
    reports = list(migrate(other, table, threads, parallel=2))
    assert statuses(reports) == dict.fromkeys(threads, Status.MOVED)
    for thread_id in threads:
        assert seen(target, thread_id) == seen(source, thread_id)
    for thread_id in WAITING.keys() & threads:
        assert answer(target, thread_id) == answer(source, thread_id)


@with_each
def test_and_back(other: SaverEndpoint, table: TableEndpoint) -> None:
    source, target = table.saver, other.saver
    threads = begin(source, THREADS.get(type(other), ["delta", "fork", "subgraphs"]))
    assert sorted(table.thread_ids()) == threads
    reports = migrate(table, other, threads, parallel=2)
    assert statuses(reports) == dict.fromkeys(threads, Status.MOVED)
    for thread_id in WAITING.keys() & threads:
        assert answer(target, thread_id) == answer(source, thread_id)
