"""A thread that LangGraph.js wrote: what the agent of examples/javascript sent to the gateway, recorded.

To record it again, start a gateway with `make gateway`, and run `python -m tests.support.javascript ADDRESS`. It needs
the packages of the example, which `make test-all` installs.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import thread_calls
from langgraph.checkpoint.dynamodb.gateway.call import endpoints_of
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.memory_calls import store_storage
from langgraph.checkpoint.dynamodb.gateway.node_calls import cache_storage
from langgraph.checkpoint.dynamodb.gateway.opaque import opaque_storage
from langgraph.checkpoint.dynamodb.gateway.serving import Principal, Reach, Serving
from tests.support.documents import ROOT
from tests.support.programs import ran

EXAMPLE = ROOT / "examples" / "javascript"
RECORDED = ROOT / "tests" / "fixtures" / "javascript"
RECORDER = Path(__file__).with_name("record_requests.mjs")
# The agent's actions: it asks, and it gets the answer.
ACTIONS = ("start", "yes")
_ENDPOINTS = {each.name: each for each in endpoints_of(thread_calls)}


def recorded(action: str, folder: Path = RECORDED) -> list[Any]:
    """Return the requests of an action of the agent that stored something."""
    return [json.loads(line) for line in (folder / f"{action}.jsonl").read_text().splitlines()]


def store_recorded(saver: DynamoDBSaver, thread_id: str, *actions: str) -> None:
    """Store what the gateway stored for actions of the agent."""
    who, limits = Principal("agents"), Limits()
    storages = (opaque_storage(saver), store_storage(saver, limits.search_bytes_max), cache_storage(saver))
    it = Serving(*storages, who, limits.response_bytes, limits.part_seconds, limits.decompressed_bytes_max)
    for each in (request for action in actions for request in recorded(action)):
        endpoint = _ENDPOINTS[each["operation"]]
        content = json.dumps({**each["request"], "thread_id": thread_id}).encode()
        saver.runner.run(endpoint.operation(it, endpoint.decoded(content, Reach(who))))


def record(address: str, folder: Path) -> list[str]:
    """Let the agent do all of its actions with a gateway, record its requests, and return what it printed."""
    printed: list[str] = []
    for action in ACTIONS:
        file = folder / f"{action}.jsonl"
        file.unlink(missing_ok=True)
        command = ("node", "--import", RECORDER, "agent.js", address, action, "trip-1")
        done = ran(*command, cwd=EXAMPLE, env={**os.environ, "LANGGRAPH_RECORDING": str(file)})
        printed += done.stdout.splitlines()
    return printed


if __name__ == "__main__":
    record(sys.argv[1], RECORDED)
