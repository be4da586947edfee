"""`export_items` and `import_items`: memories as records of plain data, with their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from langgraph.store.base import PutOp

from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Stream
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

from .batch import new_memory
from .index import Embedder
from .keys import MEMORIES, path_prefix
from .put import NewMemory, Times
from .reads import LoadedMemory, in_microseconds, load, moment
from .register import partitions_under
from .storage import StoreStorage

# How many memories are imported side by side, and embedded by one call.
IMPORTED_AT_ONCE = 100
_LOADED_AT_ONCE = 8


def export_items(storage: StoreStorage, namespace: Sequence[str]) -> Stream[dict[str, Any]]:
    """Read every memory under a namespace, in the order of keys, page by page."""
    for pk in (yield from partitions_under(storage, namespace)):
        query = Query(pk, prefix=path_prefix(MEMORIES, namespace), consistent=storage.consistent_read)
        while not query.done:
            page = yield from storage.table.query_page(query)
            for start in range(0, len(page), _LOADED_AT_ONCE):
                for each in (yield from load(storage, page[start : start + _LOADED_AT_ONCE])):
                    if each is not None:
                        yield Emit(record_of(each))


def record_of(loaded: LoadedMemory) -> dict[str, Any]:
    """Return the record of a memory."""
    memory = loaded.memory
    return {
        "namespace": list(loaded.address.namespace),
        "key": loaded.address.key,
        "value": loaded.value,
        **times_record(Times(memory.created_us, memory.updated_us, memory.expires_at)),
        "ttl_minutes": None if memory.ttl_seconds is None else memory.ttl_seconds / 60,
    }


def times_record(times: Times) -> dict[str, str | None]:
    """Return the times of a memory as a record has them."""
    expires_at = times.expires_at
    return {
        "created_at": moment(times.created_us).isoformat(),
        "updated_at": moment(times.updated_us).isoformat(),
        "expires_at": None if expires_at is None else moment(expires_at * 1_000_000).isoformat(),
    }


def times_of(record: Mapping[str, Any]) -> Times:
    """Return the times of a record.

    Raises:
        CheckpointerInputError: It has no such times; the message names the field.
    """
    return Times(
        _time(record, "created_at"),
        _time(record, "updated_at"),
        _time(record, "expires_at") // 1_000_000 if record.get("expires_at") is not None else None,
    )


def imported(record: Mapping[str, Any], index: Embedder | None) -> NewMemory:
    """Check a record of an export.

    Raises:
        CheckpointerInputError: It is no such record; the message names the field.
    """
    # The root label `langgraph` is allowed here, as in a batch: an export may have such memories, and none may be lost.
    op = PutOp(
        _field(record, "namespace"),
        _field(record, "key"),
        _field(record, "value"),
        ttl=record.get("ttl_minutes"),
    )
    return new_memory(op, index, times=times_of(record))


def _field(record: object, name: str) -> Any:
    if not isinstance(record, Mapping) or record.get(name) is None:
        msg = f"a record to import has no {name}; give the records of export_items"
        raise CheckpointerInputError(msg)
    return record[name]


def _time(record: object, name: str) -> int:
    text = _field(record, name)
    try:
        time = in_microseconds(datetime.fromisoformat(text))
        # In UTC, a time may fall before the first year or after the last one. Then no reader could show it.
        moment(time)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"a record to import has {name}={text!r}; give a time as isoformat() writes it"
        raise CheckpointerInputError(msg) from error
    return time
