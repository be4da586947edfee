"""An agent in processes without AWS variables runs, is interrupted, killed, resumed and forked through the gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver

PROJECT_FOLDER = Path(__file__).parents[3]

AGENT = """
import json, operator, os, signal, sys
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

assert not [name for name in os.environ if name.startswith("AWS")]
url, act = sys.argv[1:]

class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]

def ask(state):
    return {"log": ["asked: " + interrupt("which?")]}

def work(state):
    if act == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["worked"]}

builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_node("work", work)
builder.add_edge(START, "ask")
builder.add_edge("ask", "work")
builder.add_edge("work", END)
thread = {"configurable": {"thread_id": "agent"}}

with HttpCheckpointSaver(url) as saver:
    graph = builder.compile(checkpointer=saver)
    if act == "begin":
        graph.invoke({"log": ["begun"]}, thread)
    elif act == "die":
        graph.invoke(Command(resume="this"), thread, durability="sync")
    elif act == "go on":
        graph.invoke(None, thread)
    else:
        asked = next(each for each in graph.get_state_history(thread) if each.next == ("work",))
        forked = graph.update_state(asked.config, {"log": ["forked"]})
        graph.invoke(None, forked)
    state = graph.get_state(thread)
    print(json.dumps([state.values["log"], list(state.next)]))
assert not {"boto3", "botocore", "aiobotocore"} & sys.modules.keys()
"""


def _act(url: str, act: str, status: int = 0) -> Any:
    """Run one process of the agent, and return what it says of its thread."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS")}
    done = subprocess.run(  # noqa: S603  # This interpreter, with a program of this file.
        [sys.executable, "-c", AGENT, url, act],
        capture_output=True,
        text=True,
        cwd=PROJECT_FOLDER,
        env=environment,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if done.stdout else None


@pytest.mark.engines("dynamodb-local")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this platform has no SIGKILL")
def test_an_agent_without_aws(serve: Callable[..., str], make_saver: Callable[..., DynamoDBSaver]) -> None:
    first, second = serve(), serve()
    assert _act(first, "begin") == [["begun"], ["ask"]]
    assert _act(second, "die", -signal.SIGKILL) is None
    # What was done before it died is not done again.
    assert _act(first, "go on") == [["begun", "asked: this", "worked"], []]
    assert _act(second, "fork") == [["begun", "asked: this", "forked", "worked"], []]
    saver: BaseCheckpointSaver[Any] = make_saver()
    logs = [
        each.checkpoint["channel_values"].get("log")
        for each in saver.list({"configurable": {"thread_id": "agent"}})
    ]
    assert logs[0] == ["begun", "asked: this", "forked", "worked"]
    assert ["begun", "asked: this", "worked"] in logs
