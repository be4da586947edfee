"""Threads in the directory without any checkpoint: many at once, as puts would have entered them."""

from collections.abc import Iterable
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb import DynamoDBSaver, protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._operations.entries import ThreadDescription, entry_of


@dataclass(frozen=True)
class Entered:
    """A thread of the directory."""

    thread_id: str
    owner: str
    last_active: int
    """In epoch seconds."""
    title: str | None = None


def enter_threads(saver: DynamoDBSaver, threads: Iterable[Entered]) -> None:
    """Enter threads in the directory of a saver's table, by batches."""
    puts = [_thread_item(saver, each) for each in threads]
    saver.runner.run(saver.storage.table.batch_write(puts=puts))


def _thread_item(saver: DynamoDBSaver, entered: Entered) -> Item:
    """Return the thread item that a put leaves."""
    root = items.partition_of(entered.thread_id)
    return {
        **items.key(root.pk, items.THREAD),
        "epoch": {"B": b"12345678"},
        "ttl_seconds": {"N": "0"},
        "created_at": {"N": str(entered.last_active)},
        "last_active": {"N": str(entered.last_active)},
        "active_day": {"S": protocol.day_of(entered.last_active)},
        **entry_of(saver.storage, root, ThreadDescription(entered.owner, entered.title)),
    }
