"""A later release may answer more: today's client ignores what it does not know. Requests are in openapi.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.dynamodb._operations.threads import ThreadQuery
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, collected
from langgraph.checkpoint.dynamodb.gateway.call import asked_in
from langgraph.checkpoint.dynamodb.http import operations
from tests.gateway.through.remote import ABOUT, asking, client_of, content_of
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import THREAD, Harness

METADATA: Any = {"source": "loop", "step": 1, "run_id": "run"}


def converse(client: operations.Client, run: Callable[[Op[Any]], Any]) -> list[Any]:
    """Call every method, and return what the ones that read return."""
    log = [noise(400, each).hex() for each in range(8)]
    config = thread_config(THREAD)
    for step in range(3):
        checkpoint = checkpoint_of(f"{step}", {"log": log[: 5 + step], "kept": "x" * 300})
        checkpoint["channel_versions"] = {"log": step + 1, "kept": 1}
        new: dict[str, str | int | float] = {"log": step + 1} if step else {"log": 1, "kept": 1}
        metadata: Any = {**METADATA, "step": step, **({"tags": {"a"}} if step == 2 else {})}
        config = run(operations.put(client, config, checkpoint, metadata, new))
    run(operations.put_writes(client, config, [("log", ["new"]), ("__interrupt__", "?")], "task", "path"))
    run(operations.set_thread(client, THREAD, "ada", "Trains", {"pinned": True}))
    reader = operations.Client(client.service, client_of_nothing().memory, client.codec)
    found = run(operations.get_tuple(reader, thread_config(THREAD)))
    listed = run(collected(operations.list_checkpoints(reader, thread_config(THREAD), {"step": 1}, None, 5)))
    history = run(operations.get_delta_channel_history(reader, config, ["log", "none"]))
    runs = run(operations.list_runs(client, THREAD))
    page = run(operations.list_threads(client, ThreadQuery(owner="ada", limit=5, with_status=True)))
    run(operations.copy_thread(client, THREAD, "copy"))
    run(operations.prune(client, ["copy"], "keep_latest", None))
    run(operations.delete_for_runs(client, ["another run"]))
    run(operations.delete_thread(client, "copy"))
    threads = [(each.thread_id, each.owner, each.title, each.metadata, each.status) for each in page.threads]
    return [
        (found.checkpoint["channel_values"], found.metadata, found.pending_writes),
        [(each.checkpoint["id"], each.metadata) for each in listed],
        history,
        [(each.run_id, each.checkpoints, each.status) for each in runs],
        threads,
    ]


def client_of_nothing() -> operations.Client:
    """A client that remembers nothing."""
    return client_of(Harness().process().storage)


def record() -> tuple[list[Any], list[Any]]:
    """Return the messages of a conversation, and what its client returned."""
    harness, messages = Harness(), list[Any]()
    storage = harness.process().storage

    def ask(call: Call) -> Op[Any]:
        asked = asked_in(call)
        if asked is None:
            return ABOUT
        answer = yield from content_of(storage, asked.endpoint, asked.body())
        messages.append((call.method, json.loads(answer)))
        return asked.result(answer)

    returned = converse(client_of(storage), lambda operation: harness.run(asking(operation, ask)))
    return messages, returned


def test_todays_client_understands_what_later_answers_may_add() -> None:
    messages, returned = record()
    harness, left = Harness(), list(messages)

    def ask(call: Call) -> Op[Any]:
        yield from ()
        asked = asked_in(call)
        if asked is None:
            return extended(ABOUT)
        name, answer = left.pop(0)
        assert call.method == name
        return asked.result(json.dumps(extended(answer)).encode())

    assert converse(client_of_nothing(), lambda operation: harness.run(asking(operation, ask))) == returned
    assert left == []


def extended(answer: Any) -> Any:
    """An answer with more fields than there were, as a later release may send."""
    if isinstance(answer, list):
        return list(map(extended, answer))
    if not isinstance(answer, dict):
        return answer
    more: dict[str, Any] = {
        name: [*map(extended, each)] for name, each in answer.items() if name in ("threads", "runs")
    }
    if isinstance(answer.get("checkpoint"), dict) and "values" in answer["checkpoint"]:
        more["checkpoint"] = {**answer["checkpoint"], "new_in_a_later_release": 1}
    return {**answer, **more, "new_in_a_later_release": {"a": 1}}
