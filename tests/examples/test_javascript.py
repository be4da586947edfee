"""The checkpointer for LangGraph.js: LangGraph.js's own tests, the example's agent, and threads of both languages."""

import base64
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, StateGraph

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import MakeSaver, lacks
from tests.support.continued import Copied, Do, javascript, python
from tests.support.gateway_service import gateway_service
from tests.support.javascript import ACTIONS, EXAMPLE, record, recorded
from tests.support.programs import ran

# LangGraph.js's tests take a minute. tests/view shows a recorded thread without them.
pytestmark = [pytest.mark.search, pytest.mark.engines("dynamodb-local")]

NODE_MIN = 20
# The methods that LangGraph.js's tests are of.
METHODS = ("put", "putWrites", "getTuple", "list", "deleteThread", "getDeltaChannelHistory")


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    """Skip where the packages are missing, which only a machine without Node is excused for."""
    if not (EXAMPLE / "node_modules" / ".bin" / "vitest").exists() or shutil.which("npm") is None:
        lacks("the packages of examples/javascript are not installed: `make test-all` does it where npm is")
    version = ran("node", "--version").stdout
    if int(version.removeprefix("v").split(".")[0]) < NODE_MIN:
        pytest.skip(f"LangGraph.js's tests need Node {NODE_MIN}, and this is {version.strip()}")


@pytest.fixture
def address(make_saver: MakeSaver, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the address of a gateway on an empty table; the parameter is the service's serializer."""
    with gateway_service(make_saver(serde=getattr(request, "param", None))) as address:
        yield address


def npm_test(file: Path, *arguments: str, **environment: str) -> Any:
    """Run the tests of the example, and return their report."""
    reporters = ("--reporter=json", f"--outputFile={file}")
    done = subprocess.run(  # noqa: S603  # Our own example.
        ["npm", "test", "--", *reporters, *arguments],  # noqa: S607
        cwd=EXAMPLE,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert file.exists(), done.stdout
    report = json.loads(file.read_text())
    failures = [
        (each["fullName"], each["failureMessages"])
        for suite in report["testResults"]
        for each in suite["assertionResults"]
        if each["status"] == "failed"
    ]
    assert (failures, done.returncode) == ([], 0), done.stdout
    return report


def test_the_tests_of_langgraph_js_pass_on_a_gateway_that_they_start(tmp_path: Path) -> None:
    report = npm_test(tmp_path / "report.json")
    assert report["numPassedTests"] == report["numTotalTests"]
    suites = {
        title
        for suite in report["testResults"]
        for each in suite["assertionResults"]
        for title in each["ancestorTitles"]
    }
    assert suites >= {f"GatewaySaver#{method}" for method in METHODS}


def test_they_use_a_gateway_that_they_are_given(address: str, tmp_path: Path) -> None:
    only = ("gateway-saver", "-t", "an agent")
    report = npm_test(tmp_path / "report.json", *only, LANGGRAPH_GATEWAY_URL=address, MAKE="none")
    assert report["numPassedTests"] == 1


def test_the_agent_asks_and_resumes_in_another_process_and_was_recorded_as_it_is(
    address: str, tmp_path: Path
) -> None:
    asked = ["asks: Book Lisbon?", "human: Where to?", "ai: Lisbon is warm."]
    assert record(address, tmp_path) == [*asked, *asked[1:], "tool: booked"]
    for action in ACTIONS:
        assert shapes(recorded(action, tmp_path)) == shapes(recorded(action))


class SaverWithTexts(HttpCheckpointSaver):
    """Begins threads with texts as versions, which those that come from LangGraph's savers have."""

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after `current`."""
        return super().get_next_version("0" if current is None else current, channel)


@pytest.fixture
def languages(address: str) -> Iterator[dict[str, Do]]:
    """Give the agents of both languages, with the same gateway."""
    with SaverWithTexts(address) as saver, javascript(address) as do:
        yield {"python": python(saver), "javascript": do}


# A service with a key returns metadata as their serializer made them, and not as JSON.
keys = pytest.mark.parametrize(
    "address",
    [None, EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")],
    indirect=True,
    ids=["plain", "encrypted"],
)
both_ways = pytest.mark.parametrize(
    ("began", "continues"), [("python", "javascript"), ("javascript", "python")]
)


@both_ways
def test_parallel_interrupts_are_asked_again_and_resumed_by_their_new_ids(
    languages: dict[str, Do], began: str, continues: str
) -> None:
    first, other = languages[began], languages[continues]
    asked = dict(first("parallel", "start")["asked"])
    # An interrupt's id is made from its task's, which each language makes in its own way: an answer by it is lost.
    again = other("parallel", "resume", dict.fromkeys(asked.values(), "lost"))
    new = dict(again["asked"])
    assert new.keys() == asked.keys() == {"Which flight?", "Which hotel?"}
    assert set(new.values()).isdisjoint(asked.values())
    # For the same reason, the node that had finished runs again.
    assert again["ran"] == ["flight", "hotel", "weather"]
    one = other("parallel", "resume", {new["Which flight?"]: "TAP"})
    assert one["asked"] == [["Which hotel?", new["Which hotel?"]]]
    both = other("parallel", "resume", {new["Which hotel?"]: "Ritz"})
    assert both["ran"] == ["book", "hotel"]
    assert both["said"] == ["flight: TAP", "hotel: Ritz", "weather: warm", "booked"]
    assert first("parallel", "history") == other("parallel", "history")


@keys
@both_ways
def test_a_fork_of_the_others_history_is_continued_by_either(
    languages: dict[str, Do], began: str, continues: str
) -> None:
    first, other = languages[began], languages[continues]
    assert first("fork", "start", "Lisbon")["said"] == ["Lisbon", "Booking.", "booked Lisbon"]
    [before_plan] = [at for at, following, _ in other("fork", "history") if following == ["plan"]]
    forked = other("fork", "update", "Rome", before_plan)
    ended = other("fork", "go on", None, forked)
    assert (ended["ran"], ended["said"][1:]) == (["book", "plan"], ["Rome", "Booking.", "booked Rome"])
    assert first("fork", "start", "Oslo")["said"][-3:] == ["Oslo", "Booking.", "booked Oslo"]
    # The newest checkpoints are the first ones.
    history = other("fork", "history")
    assert history == first("fork", "history")
    ran = [*["loop"] * 3, "input"]
    assert [source for *_, source in history] == [*ran, "loop", "loop", "update", *ran]
    # The first branch has a checkpoint before each of its nodes still.
    [before_book] = [at for at, following, _ in history[-4:] if following == ["book"]]
    assert first("fork", "go on", None, before_book)["said"] == ["Lisbon", "Booking.", "booked Lisbon"]


@both_ways
def test_a_send_to_a_subgraph_that_waits_begins_again(
    languages: dict[str, Do], began: str, continues: str
) -> None:
    first, other = languages[began], languages[continues]
    started = first("send", "start")
    assert (started["ran"], started["said"]) == (["ask", "look", "plan"], ["planned"])
    again = other("send", "go on")
    # A subgraph's namespace has the id of its task, so that the other language's begins anew, with the same argument.
    assert again["ran"] == ["ask", "look"]
    [[question, new]] = again["asked"]
    assert (question, [[question, new]] == started["asked"]) == ("Book Lisbon?", False)
    ended = other("send", "resume", {new: "yes"})
    assert (ended["ran"], ended["said"]) == (["ask"], ["planned", "looked at Lisbon", "Lisbon: yes"])
    assert first("send", "history") == other("send", "history")


@keys
def test_javascript_reads_values_of_python_and_writes_what_python_reads(
    address: str, languages: dict[str, Do]
) -> None:
    call = {"name": "book", "args": {"city": "Lisbon"}, "id": "call-1", "type": "tool_call"}
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    same = {
        "messages": [
            SystemMessage("Be brief."),
            HumanMessage([{"type": "text", "text": "Where to?"}], id="1", name="ann"),
            AIMessage("Lisbon.", id="2", tool_calls=[call], usage_metadata=usage),
            ToolMessage("full", tool_call_id="call-1", status="error", artifact={"seats": 0}),
            RemoveMessage(id="1"),
        ],
        "set": {"a", "b"},
        "plain": [None, True, 1.5, -(2**40), "\U0001f600", {}],
    }
    number, now = uuid.uuid4(), datetime.now(timezone.utc)
    other = {"uuid": number, "time": now, "decimal": Decimal("1.50"), "tuple": (1, 2)}
    became = {"uuid": str(number), "time": now.isoformat(), "decimal": "1.50", "tuple": [1, 2]}
    graph: Any = StateGraph(Copied).add_node("copies", lambda _: {}).add_edge(START, "copies")
    with HttpCheckpointSaver(address) as saver:
        agent = graph.compile(checkpointer=saver, interrupt_before=["copies"])
        config: Any = {"configurable": {"thread_id": "copy"}}
        agent.invoke({"value": {**same, **other}}, config)
        assert languages["javascript"]("copy", "go on")["ran"] == ["copies"]
        assert agent.get_state(config).values["copy"] == {**same, **became}


USE = """
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { GatewaySaver } from "langgraph-dynamodb-javascript";

declare const process: { argv: [string, string, string] };
const checkpointer = new GatewaySaver(process.argv[2], { token: async () => "t", ownerFrom: "user_id" });
const graph = new StateGraph(MessagesAnnotation)
  .addNode("reply", () => ({ messages: ["Hello."] }))
  .addEdge(START, "reply")
  .compile({ checkpointer });
const config = { configurable: { thread_id: "t", user_id: "ann" } };
await graph.invoke({ messages: ["Hi"] }, config);
const found = await checkpointer.getTuple(config);
console.log((found?.checkpoint.channel_values.messages as unknown[]).length);
"""
COMPILER_OPTIONS = {"module": "nodenext", "target": "es2022", "strict": True, "skipLibCheck": True}


def test_its_package_runs_in_an_empty_project_with_types_and_enters_threads_in_the_directory(
    make_saver: MakeSaver, tmp_path: Path
) -> None:
    (tmp_path / "use.mts").write_text(USE)
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER_OPTIONS}))
    (tmp_path / "package.json").write_text("{}")

    def run(*command: str, cwd: Path = tmp_path) -> str:
        return ran(*command, cwd=cwd).stdout

    package = run("npm", "pack", "--silent", "--pack-destination", str(tmp_path), cwd=EXAMPLE).strip()
    developed = json.loads((EXAMPLE / "package.json").read_text())["devDependencies"]
    others = [f"{name}@{developed[name]}" for name in ("@langchain/langgraph", "@langchain/core")]
    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefer-offline", f"./{package}", *others)
    run(str(EXAMPLE / "node_modules" / ".bin" / "tsc"))
    with gateway_service(make_saver()) as address:
        assert run("node", "use.mjs", address) == "2\n"
    [thread] = make_saver().threads(owner="ann").threads
    assert thread.thread_id == "t"


def shapes(requests: list[Any]) -> list[Any]:
    """Return requests without what is new in each run: ids and times."""
    return [_shape(each) for each in requests]


def _shape(value: Any) -> Any:
    if isinstance(value, list):
        return [_shape(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"type", "data"}:
        return {"type": value["type"], "data": _shape(json.loads(base64.b64decode(value["data"])))}
    new = ("id", "ts", "checkpoint_id", "parent_checkpoint_id", "task_id", "order")
    return {name: _shape(each) for name, each in value.items() if name not in new}
