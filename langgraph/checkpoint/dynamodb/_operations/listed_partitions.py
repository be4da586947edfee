"""Lists of partitions that need no scan: an item of each is found through the index, under a few values of its key.

A process writes the item before the first item that relies on it, and again once an hour.
"""

import zlib
from collections.abc import Callable, Iterable, MutableMapping

from .._format.items import Item, partition_key
from .._format.schema import PARTITION_KEY, RUN_ID, RUN_INDEX, SORT_KEY
from .._runtime.requests import Query, Table
from .._runtime.steps import Op, gather

LISTED_SECONDS = 3600
# No single value of the index's key takes every write.
_SHARDS = 4


def ensure_listed(
    table: Table,
    mark: str,
    partitions: Iterable[str],
    item_of: Callable[[str], Item],
    listed: MutableMapping[str, float],
    now: float,
) -> Op[None]:
    """List partitions, unless this process has done so within the last hour.

    Args:
        table: The table.
        mark: The name of the list.
        partitions: The keys of the partitions.
        item_of: Returns the item by which a partition is found.
        listed: When this process listed each partition, in epoch seconds. It is updated, and what is due is forgotten.
        now: The time, in epoch seconds.
    """
    due = [pk for pk in dict.fromkeys(partitions) if listed.get(pk, 0.0) <= now - LISTED_SECONDS]
    new = [{**item_of(pk), RUN_ID: {"S": f"{mark}{zlib.crc32(pk.encode()) % _SHARDS}"}} for pk in due]
    yield from gather([table.send("put_item", Item=each) for each in new])
    if due:
        # A copy, since other OS threads may add to it.
        for pk, listed_at in list(listed.items()):
            if listed_at <= now - LISTED_SECONDS:
                listed.pop(pk, None)
        listed.update(dict.fromkeys(due, now))


def listed(table: Table, mark: str, name_of: Callable[[Item], str], prefix: str = "") -> Op[set[str]]:
    """Read the names of the items of a list that begin with a prefix. The index is eventually consistent.

    Args:
        table: The table.
        mark: The name of the list.
        name_of: Returns the name of an item, by its key.
        prefix: The prefix.
    """
    shards = [
        Query(
            f"{mark}{shard}",
            consistent=False,
            index=(RUN_INDEX, RUN_ID),
            attributes=(PARTITION_KEY, SORT_KEY),
        )
        for shard in range(_SHARDS)
    ]
    found = yield from gather([_names(table, each, mark, name_of, prefix) for each in shards])
    return set[str]().union(*found)


def _names(
    table: Table, query: Query, mark: str, name_of: Callable[[Item], str], prefix: str
) -> Op[set[str]]:
    """Read names page by page: there may be very many, and most may be others'."""
    found = set[str]()
    while not query.done:
        page = yield from table.query_page(query)
        # Users choose the ids of runs, and the index may have a run under the name of a list.
        names = (name_of(item) for item in page if partition_key(item).endswith(mark))
        found.update(each for each in names if each.startswith(prefix))
    return found
