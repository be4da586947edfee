"""Detecting another saver's table: raise an error, instead of starting every conversation from scratch.

Two other savers use the same key attributes as this one, with keys that this one never reads. Their tables lack the
index. So when a process first finds a thread empty, it looks once for the index and for their items of that thread. If
the index is missing or there are such items, it looks again for each thread that it finds empty.
"""

from typing import Any

from .._format import items
from .._format.limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX
from .._format.schema import DOCS_COMMAND, PARTITION_KEY, RUN_ID, RUN_INDEX, SORT_KEY, TEMPLATE_COMMAND
from .._runtime.failures import error_code
from .._runtime.requests import Query
from .._runtime.steps import Call, Op
from .._runtime.storage import Storage
from ..errors import CheckpointerConfigurationError

# No run has this id: the query only tells whether the index exists.
_NO_RUN = "-"
_INDEX = "the index"
_DENIED = "AccessDeniedException"


def look_for_other_savers(storage: Storage, partition: items.Partition) -> Op[None]:
    """Look for other savers' items of a namespace that seems new or empty.

    A table that is known to be this saver's alone is not asked.

    Raises:
        CheckpointerConfigurationError: Another saver has checkpoints there.
    """
    facts = storage.cache.facts
    if facts.is_shared is False:
        return
    queries = _of_others(partition)
    if facts.is_shared is None:
        queries[_INDEX] = Query(
            _NO_RUN, consistent=False, first_page=1, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,)
        )
    if not queries:
        return
    outcomes = yield [
        Call("query", {"TableName": storage.table.name, **each.params()}) for each in queries.values()
    ]
    found = dict(zip(queries, outcomes, strict=True))
    if _says_no_index(found.pop(_INDEX, None)):
        facts.is_shared = True
    for saver, outcome in found.items():
        # A tenant's policy allows only the keys of its own threads. Such a table was created from our template.
        stored = [] if error_code(outcome) == _DENIED else storage.table.checked(outcome)["Items"]
        if stored:
            facts.is_shared = True
            raise CheckpointerConfigurationError(
                f"table {storage.table.name} holds checkpoints of {saver} ({items.name_of(stored[0])}) for this"
                " thread. This saver cannot read them, so the conversation would begin anew. Use a separate table"
                f" (`{TEMPLATE_COMMAND}` prints its template), and move the threads:"
                f" `{DOCS_COMMAND} migrating`"
            )
    # Other threads may be looking at the same time, and may have set it to True.
    facts.is_shared = facts.is_shared or False


def _of_others(partition: items.Partition) -> dict[str, Query]:
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
