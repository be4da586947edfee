"""Another saver's table: whoever gives its name to this one is told, instead of finding every conversation begun anew.

Two savers keep their items under the same key attributes as this one, in keys that this one never reads. Their tables
lack the index. So a process looks once, when it first finds a thread empty: for the index, and for what they would have
of that thread. Where the index is missing, or they did have something, it looks at each thread that it finds empty.
"""

from __future__ import annotations

import logging
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
)
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError

logger = logging.getLogger(__name__)

# No run has this id: all that is asked is whether there is an index.
_NO_RUN = "-"
_INDEX = "the index"
_DENIED = "AccessDeniedException"

_warned: set[str] = set()


def look_for_other_savers(table: Table, at: Partition | None) -> Op[None]:
    """Look where nothing was found of a namespace, or of the whole table, unless the table is known to be ours.

    Raises:
        CheckpointerConfigurationError: Another saver has checkpoints there.
    """
    if table.memory.facts.is_shared is False:
        return
    looks = {} if at is None else _of_others(at)
    if table.memory.facts.is_shared is None:
        looks[_INDEX] = Query(
            _NO_RUN, consistent=False, first_page=1, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,)
        )
    if not looks:
        return
    outcomes = yield [Call("query", {"TableName": table.name, **each.params()}) for each in looks.values()]
    found = dict(zip(looks, outcomes, strict=True))
    if _says_no_index(found.pop(_INDEX, None)):
        table.memory.facts.is_shared = True
        _warn_once(table)
    for saver, outcome in found.items():
        # A tenant's policy allows the keys of its own threads only; the table is of our template then.
        stored = [] if error_code(outcome) == _DENIED else table.checked(outcome)["Items"]
        if stored:
            table.memory.facts.is_shared = True
            msg = (
                f"table {table.name} holds checkpoints of {saver} ({items.name_of(stored[0])}), which this saver does"
                " not read, and none of its own there: the conversation would begin anew. Give this saver a table of"
                f" its own, whose template `{TEMPLATE_COMMAND}` prints, and move the"
                f" threads: `{DOCS_COMMAND} migrating`"
            )
            raise CheckpointerConfigurationError(msg)
    # Others may be looking at the same time, and have found more.
    table.memory.facts.is_shared = table.memory.facts.is_shared or False


def _of_others(at: Partition) -> dict[str, Query]:
    """How to find a namespace's checkpoints of each other saver."""
    keys = {
        "langgraph-checkpoint-aws": (f"CHECKPOINT_{at.thread_id}", f"{at.namespace}#"),
        "langgraph-checkpoint-amazon-dynamodb": (at.thread_id, f"{at.namespace}#checkpoint#"),
    }
    return {
        saver: Query(pk, prefix=sk, consistent=False, first_page=1, attributes=(PARTITION_KEY, SORT_KEY))
        for saver, (pk, sk) in keys.items()
        # A key with a `#` may be one of ours: all of them have one.
        if "#" not in pk and _fits(pk, PARTITION_KEY_BYTES_MAX) and _fits(sk, SORT_KEY_BYTES_MAX)
    }


def _fits(key: str, limit: int) -> bool:
    return len(key.encode()) <= limit


def _says_no_index(outcome: Any) -> bool:
    """Whether a query of the index failed for want of it; DynamoDB says so in words, and moto by the code."""
    says_so = isinstance(outcome, Exception) and "specified index" in str(outcome)
    return says_so or error_code(outcome) == "ResourceNotFoundException"


def _warn_once(table: Table) -> None:
    if table.name not in _warned:
        _warned.add(table.name)
        logger.warning(
            "Table %s has no %s, so it was made for another saver or by hand. What another saver keeps in it is not"
            " read here, and delete_for_runs and list by run_id will fail. Give this saver a table of its own, whose"
            " template `%s` prints.",
            table.name,
            RUN_INDEX,
            TEMPLATE_COMMAND,
        )
