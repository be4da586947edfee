"""`warm_up`: one cheap request, for all that the first one needs: modules, a client, credentials and a connection."""

from __future__ import annotations

import logging

from langgraph.checkpoint.dynamodb._format.items import key
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op

logger = logging.getLogger(__name__)


def first_read(table_name: str) -> Call:
    """Return a request for an item that no table has. It costs a read unit, or nothing if it is denied."""
    item_key = key("langgraph-dynamodb#", "?")
    return Call("get_item", {"TableName": table_name, "Key": item_key}, is_sent_once=True)


def warm_up(request: Call) -> Op[None]:
    """Send a request, once. Any answer will do, and a failure is only logged: the first call raises what is wrong."""
    [outcome] = yield (request,)
    if isinstance(outcome, Exception) and not error_code(outcome):
        logger.warning("warm_up got no answer, so the first call takes longer: %s", outcome)
