"""An agent on Lambda: `handler` runs it with asyncio, `sync_handler` without; the template's parameter chooses.

Both take `{"thread_id": "...", "message_id": "...", "message": "..."}` and return `{"reply": "...", "messages": 2}`;
or an `error` in place of the reply, if the message cannot be answered however often it is tried.
Lambda invokes again what it is not sure of, and so do its clients: the message id keeps that from being heard twice.
"""

import asyncio
import os
from typing import Any

from agent import MessageFailedError, aconverse, build_agent, converse, reply_to

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import EmbeddedMetrics
from langgraph.store.dynamodb import DynamoDBStore

# Lambda imports this module once per execution environment and then calls the handler many times. Saver and store are
# made here, so that their connections and what they remember are used again. They survive that Lambda freezes the
# process in between.
# Where DynamoDB throttles or does not answer, a request is given up before Lambda ends the process: the error says what
# is wrong, and the thread is let go. What that adds up to is under "Time-outs" in docs/deploy.md.
table_name, retry_seconds = os.environ["TABLE_NAME"], float(os.environ["RETRY_SECONDS"])
# Writes what each operation took, and whether it failed, to the function's log, of which CloudWatch makes metrics.
metrics = EmbeddedMetrics()
saver = DynamoDBSaver(table_name, retry_seconds=retry_seconds, on_event=metrics)
store = DynamoDBStore(table_name, retry_seconds=retry_seconds, on_event=metrics)
agent = build_agent(saver, store)
# The event loop stays too: connections belong to the loop that opened them, and `asyncio.run` makes one per call.
loop = asyncio.new_event_loop()
# Lambda gives the start a processor of its own, and nobody waits for an answer yet. So what the first call needs is
# loaded here, for the handler that Lambda was told to call.
if os.environ.get("_HANDLER", "").endswith("sync_handler"):
    saver.warm_up()
    store.warm_up()
else:
    loop.run_until_complete(saver.awarm_up())
    loop.run_until_complete(store.awarm_up())


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer a message, on the event loop of this execution environment.

    Args:
        event: `thread_id`, `message_id` and `message`.
        _context: Lambda's context, not used.

    Returns:
        The reply or an error, and how many messages the thread holds.
    """
    request = _request(event)
    return _response(loop.run_until_complete(aconverse(agent, *request)), request[1])


def sync_handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer a message without an event loop.

    Args:
        event: `thread_id`, `message_id` and `message`.
        _context: Lambda's context, not used.

    Returns:
        The reply or an error, and how many messages the thread holds.
    """
    request = _request(event)
    return _response(converse(agent, *request), request[1])


def _request(event: dict[str, Any]) -> tuple[str, str, str]:
    missing = {"thread_id", "message_id", "message"} - event.keys()
    if missing:
        raise ValueError(f"the event needs {' and '.join(sorted(missing))}")
    return event["thread_id"], event["message_id"], event["message"]


def _response(state: dict[str, Any], message_id: str) -> dict[str, Any]:
    # Not raised: Lambda would send the event again, and so would a queue, to no avail.
    try:
        answer = {"reply": reply_to(state, message_id)}
    except MessageFailedError as error:
        answer = {"error": str(error)}
    return {**answer, "messages": len(state["messages"])}
