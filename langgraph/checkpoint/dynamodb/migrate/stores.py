"""Memories of other stores: each is read as records of plain data, with its times, and stored by `import_items`.

The source is only read. A memory that the target has, as new or newer, is not stored again, so a move that was
interrupted can be repeated, and so can one while agents run.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from typing import Any, BinaryIO, TypeAlias

from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, Item

from langgraph.store.dynamodb import DynamoDBStore, batch

from .._format.moments import moment_of
from ..config.backends import is_connection_string, without_values
from ..errors import CheckpointerConfigurationError, CheckpointerInputError, CheckpointSerializationError
from .endpoints import existing_sqlite, made_by_function, parse_endpoint, reading
from .lines import LineWriter, read_lines

Records: TypeAlias = Iterator[dict[str, Any]]

FORMAT = "langgraph-memories"
_POSTGRES = ("postgresql", "postgres")
_PAGE_MEMORIES = 500


# Sources


@contextmanager
def open_memories(endpoint: str) -> Iterator[Records]:
    """Open a named endpoint, and read its memories.

    Args:
        endpoint: One of `ENDPOINTS`.

    Yields:
        Records in the form of `DynamoDBStore.export_items`, with ttls if the source has them.

    Raises:
        CheckpointerInputError: The endpoint is none of `ENDPOINTS`.
        CheckpointerConfigurationError: It cannot be reached, or has no memories.
    """
    kind, rest = parse_endpoint(endpoint)
    with ExitStack() as stack:
        if kind in _POSTGRES:
            yield stack.enter_context(_postgres(endpoint))
        elif kind == "sqlite":
            yield stack.enter_context(_sqlite(rest.removeprefix("//")))
        else:
            yield memories_of(stack.enter_context(made_by_function(kind, rest, BaseStore)))


def memories_of(store: BaseStore) -> Records:
    """Read the memories of any store, page by page. LangGraph's interface does not show their ttls."""
    if isinstance(store, DynamoDBStore):
        yield from store.export_items()
        return
    seen = set[tuple[tuple[str, ...], str]]()
    offset = 0
    while True:
        page = store.search((), limit=_PAGE_MEMORIES, offset=offset, refresh_ttl=False)
        for each in page:
            # A memory that was put meanwhile moves the others on.
            if (each.namespace, each.key) not in seen:
                seen.add((each.namespace, each.key))
                yield {**Item.dict(each), "ttl_minutes": None, "expires_at": None}
        if len(page) < _PAGE_MEMORIES:
            return
        offset += _PAGE_MEMORIES


@contextmanager
def _postgres(connection_string: str) -> Iterator[Records]:
    with reading("postgres"):
        import psycopg  # noqa: PLC0415 - an extra that not everybody installs.
        from psycopg.rows import dict_row  # noqa: PLC0415

    if not is_connection_string(connection_string):
        msg = "the connection string of Postgres cannot be read; write postgresql://user:password@host:port/database"
        raise CheckpointerConfigurationError(msg)
    try:
        with (
            psycopg.connect(connection_string, row_factory=dict_row) as connection,
            # On the server, so that the memories need not be in memory all at once, and are of one moment.
            connection.cursor(name="memories") as cursor,
        ):
            cursor.execute("SELECT * FROM store ORDER BY prefix, key")
            yield map(_of_row, cursor)
    except psycopg.Error as error:
        says = without_values(connection_string, error)
        msg = f"the memories of Postgres cannot be read: {says}; name the database that LangGraph's PostgresStore uses"
        raise CheckpointerConfigurationError(msg) from None


@contextmanager
def _sqlite(path: str) -> Iterator[Records]:
    with existing_sqlite(path, "store") as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT * FROM store ORDER BY prefix, key")
        yield (_of_row({**dict(row), "value": json.loads(row["value"])}) for row in rows)


def _of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a row of LangGraph's stores, whose namespaces have dots between labels."""
    times = {name: _time(row[name]) for name in ("created_at", "updated_at")}
    item = Item(namespace=tuple(row["prefix"].split(".")), key=row["key"], value=row["value"], **times)
    # Tables of early releases have no ttl.
    ends = None if row.get("expires_at") is None else _time(row["expires_at"]).isoformat()
    return {**item.dict(), "ttl_minutes": row.get("ttl_minutes"), "expires_at": ends}


def _time(value: Any) -> datetime:
    moment = value if isinstance(value, datetime) else moment_of(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


# Files


def write_memories(records: Iterable[Mapping[str, Any]], file: BinaryIO) -> int:
    """Write records of `export_items` to a file that need not be seekable; return how many there were."""
    lines, count = LineWriter(file, FORMAT), 0
    for record in records:
        lines.write(record)
        count += 1
    lines.end()
    return count


def read_memories(file: BinaryIO) -> Records:
    """Read the records of a file. Errors are those of `read_lines`."""
    return (line for offset, line in read_lines(file, FORMAT) if offset)


# The move


@dataclass
class MovedMemories:
    """The outcome for the memories of a source."""

    read: int = 0
    stored: int = 0
    compared: int = 0
    """Those that the target has as the source has them."""
    newer: int = 0
    """Those that were changed in the target since."""
    expired: int = 0
    """Those that have expired. They are not moved."""
    failed: dict[tuple[tuple[str, ...], str], str] = field(default_factory=dict)
    """By namespace and key, why a memory is not in the target as it is in the source."""


def move_memories(
    records: Iterable[Mapping[str, Any]], target: DynamoDBStore, tell: Callable[[int], object] | None = None
) -> MovedMemories:
    """Store memories in a table, with their times, and read each back to compare.

    Args:
        records: The records from `open_memories` or `memories_of`.
        target: The endpoint to move them to.
        tell: Is called with the number of memories of each group that was moved.

    Returns:
        How many memories were read, stored and compared, and which could not be.
    """
    moved = MovedMemories()
    source = iter(records)
    while group := list(islice(source, batch.IMPORTED_AT_ONCE)):
        moved.read += len(group)
        living = [each for each in group if not _has_expired(each)]
        moved.expired += len(group) - len(living)
        stored = _stored(living, target, moved)
        gets = [GetOp(tuple(each["namespace"]), each["key"], refresh_ttl=False) for each in stored]
        for record, found in zip(stored, target.batch(gets), strict=True):
            _compare(record, found if isinstance(found, Item) else None, moved)
        if tell is not None:
            tell(len(group))
    return moved


def _stored(
    records: Sequence[Mapping[str, Any]], target: DynamoDBStore, moved: MovedMemories
) -> Sequence[Mapping[str, Any]]:
    """Store memories; return those that the target takes. One that it refuses keeps no other from being stored."""
    try:
        moved.stored += target.import_items(records)
    except (CheckpointerInputError, CheckpointSerializationError, InvalidNamespaceError) as error:
        if len(records) == 1:
            moved.failed[_name(records[0])] = str(error)
            return []
        half = len(records) // 2
        return [each for some in (records[:half], records[half:]) for each in _stored(some, target, moved)]
    return records


def _compare(record: Mapping[str, Any], found: Item | None, moved: MovedMemories) -> None:
    if found is not None and found.updated_at > moment_of(record["updated_at"]):
        moved.newer += 1
    elif found is not None and _same(record, found):
        moved.compared += 1
    elif found is None and _has_expired(record):
        moved.expired += 1
    else:
        moved.failed[_name(record)] = "the target does not have it as the source does"


def _same(record: Mapping[str, Any], found: Item) -> bool:
    # As text, since Python takes 1, 1.0 and True for equal.
    return found.created_at == moment_of(record["created_at"]) and (
        json.dumps(record["value"], sort_keys=True) == json.dumps(found.value, sort_keys=True)
    )


def _has_expired(record: Mapping[str, Any]) -> bool:
    ends = record.get("expires_at")
    try:
        return ends is not None and moment_of(ends) <= datetime.now(timezone.utc)
    except (TypeError, ValueError):
        # The target says what is wrong with it.
        return False


def _name(record: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    return tuple(record["namespace"]), str(record["key"])
