"""Detecting another saver's table: raise an error, instead of starting every conversation from scratch.

Two other savers use the same key attributes as this one, with keys that this one never reads. Their tables lack the
index. So when a process first finds a thread empty, it looks once for the index and for their items of that thread. If
the index is missing or there are such items, it looks again for each thread that it finds empty.

Beside the first look, a saver with a ttl asks whether DynamoDB removes what expires.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX
from langgraph.checkpoint.dynamodb._format.schema import (
    DOCS_COMMAND,
    PARTITION_KEY,
    RUN_ID,
    RUN_INDEX,
    SORT_KEY,
    TEMPLATE_COMMAND,
    TTL_ATTRIBUTE,
)
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError

logger = logging.getLogger(__name__)

# No run has this id: the query only tells whether the index exists.
_NO_RUN = "-"
_INDEX = "the index"
_EXPIRY = "expiry"
_DENIED = "AccessDeniedException"

_warned: set[str] = set()
_warned_of_expiry: set[str] = set()


def look_for_other_savers(storage: Storage, partition: Partition | None) -> Op[None]:
    """Look for other savers' items of a namespace that seems new or empty, or of the whole table.

    A table that is known to be this saver's alone is not asked.

    Raises:
        CheckpointerConfigurationError: Another saver has checkpoints there.
    """
    if storage.cache.facts.is_shared is False:
        return
    table = {"TableName": storage.table.name}
    queries = {} if partition is None else _of_others(partition)
    is_first = storage.cache.facts.is_shared is None
    if is_first:
        queries[_INDEX] = Query(
            _NO_RUN, consistent=False, first_page=1, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,)
        )
    looks = {name: Call("query", {**table, **each.params()}) for name, each in queries.items()}
    if is_first and storage.ttl_seconds is not None:
        # Beside the queries it takes no time. It is sent once, since many processes may start together.
        looks[_EXPIRY] = Call("describe_time_to_live", table, is_sent_once=True)
    if not looks:
        return
    outcomes = yield [*looks.values()]
    found = dict(zip(looks, outcomes, strict=True))
    _warn_if_nothing_is_removed(storage, found.pop(_EXPIRY, None))
    if _says_no_index(found.pop(_INDEX, None)):
        storage.cache.facts.is_shared = True
        _warn_once(storage)
    for saver, outcome in found.items():
        # A tenant's policy allows only the keys of its own threads. Such a table was created from our template.
        stored = [] if error_code(outcome) == _DENIED else storage.table.checked(outcome)["Items"]
        if stored:
            storage.cache.facts.is_shared = True
            msg = (
                f"table {storage.table.name} holds checkpoints of {saver} ({items.name_of(stored[0])}) for this"
                " thread. This saver cannot read them, so the conversation would begin anew. Use a separate table"
                f" (`{TEMPLATE_COMMAND}` prints its template), and move the threads:"
                f" `{DOCS_COMMAND} migrating`"
            )
            raise CheckpointerConfigurationError(msg)
    # Other threads may be looking at the same time, and may have set it to True.
    storage.cache.facts.is_shared = storage.cache.facts.is_shared or False


def _of_others(partition: Partition) -> dict[str, Query]:
    """Return, for each other saver, a query for its checkpoints of a namespace."""
    keys = {
        "langgraph-checkpoint-aws": (f"CHECKPOINT_{partition.thread_id}", f"{partition.namespace}#"),
        "langgraph-checkpoint-amazon-dynamodb": (partition.thread_id, f"{partition.namespace}#checkpoint#"),
    }
    return {
        saver: Query(pk, prefix=sk, consistent=False, first_page=1, attributes=(PARTITION_KEY, SORT_KEY))
        for saver, (pk, sk) in keys.items()
        # A key with a `#` may be ours: all of our keys contain one.
        if "#" not in pk and _fits(pk, PARTITION_KEY_BYTES_MAX) and _fits(sk, SORT_KEY_BYTES_MAX)
    }


def _fits(key: str, limit: int) -> bool:
    return len(key.encode()) <= limit


def _says_no_index(outcome: Any) -> bool:
    """Tell whether a query failed because the index is missing. DynamoDB says so in the message, moto in the code."""
    says_so = isinstance(outcome, Exception) and "specified index" in str(outcome)
    return says_so or error_code(outcome) == "ResourceNotFoundException"


def _warn_once(storage: Storage) -> None:
    if storage.table.name not in _warned:
        _warned.add(storage.table.name)
        logger.warning(
            "Table %s has no %s, so it was created for another saver or by hand. This saver does not read what another"
            " saver stores, and delete_for_runs and list by run_id will fail. Use a separate table: `%s` prints its"
            " template.",
            storage.table.name,
            RUN_INDEX,
            TEMPLATE_COMMAND,
        )


def _warn_if_nothing_is_removed(storage: Storage, outcome: Any) -> None:
    """Log once if DynamoDB removes nothing from the table. A caller without the right to know it is told nothing."""
    if not isinstance(outcome, Mapping) or storage.table.name in _warned_of_expiry:
        return
    if outcome["TimeToLiveDescription"]["TimeToLiveStatus"] in ("DISABLED", "DISABLING"):
        _warned_of_expiry.add(storage.table.name)
        logger.warning(
            "Table %s has its time to live switched off, and this saver has ttl_seconds=%s. What expires is hidden, but"
            " it stays in the table for ever. Switch it on: `aws dynamodb update-time-to-live --table-name %s"
            " --time-to-live-specification Enabled=true,AttributeName=%s`",
            storage.table.name,
            storage.ttl_seconds,
            storage.table.name,
            TTL_ATTRIBUTE,
        )
