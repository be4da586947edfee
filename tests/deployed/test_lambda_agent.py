"""`infra/examples/lambda-agent`, run as Lambda runs it: in processes that import it once and are frozen in between."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._runtime.clients import default_config
from tests.chaos.faults import Fault, Faults
from tests.chaos.proxy import proxied
from tests.deployed import lambda_runtime
from tests.infra.rendering import INFRA, Node, load
from tests.infra.stacks import TABLE_STACK, stack_of
from tests.support.scripted import scripted_server
from tools.engine import Engine

EXAMPLES = INFRA / "examples"
# What is tested here is the process, so one engine does; where connections matter it is the one that keeps them open.
pytestmark = pytest.mark.engines("dynamodb-local")
DOCUMENT = (INFRA.parent / "docs" / "deploy.md").read_text(encoding="utf-8")
# What one attempt of a request takes at most, and how many requests may be given up one after the other: one of the
# run, the renewal of the lock, and the one that lets go of it.
ATTEMPT_SECONDS = default_config().connect_timeout + default_config().read_timeout
GIVEN_UP = 3
LAMBDA = "examples/lambda-agent/template.yaml"
HANDLERS = ["handler.handler", "handler.sync_handler"]
# The blocking one differs by its driver, which has tests of its own.
BOTH = [HANDLERS[0], pytest.param(HANDLERS[1], marks=pytest.mark.search)]


Start: TypeAlias = "Callable[..., Environment]"


class Environment:
    """An execution environment of Lambda: one process, one event at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take over a process that runs `lambda_runtime`."""
        self._process = process

    def send(self, **event: str) -> None:
        """Begin an invocation, for a message of its own where it has no id."""
        assert self._process.stdin is not None
        event = {"message_id": uuid.uuid4().hex, **event}
        self._process.stdin.write(json.dumps(event) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Node:
        """Wait for the invocation to end; the answer is its result or its error."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def is_dead(self) -> bool:
        """Wait for the invocation to end; whether the process ended with it, and without an answer."""
        assert self._process.stdout is not None
        return self._process.stdout.readline() == ""

    def invoke(self, **event: str) -> Node:
        """Run an invocation that is expected to succeed."""
        self.send(**event)
        answer = self.answer()
        assert "result" in answer, answer
        return answer["result"]

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the process for the duration of the context, as Lambda does between two invocations."""
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)


class Dead(Faults):
    """Finds the connections dead that the next requests use, as a network has forgotten those of a frozen process."""

    def __init__(self) -> None:
        """Let all connections live."""
        self.requests = 0

    def of(self, number: int) -> tuple[Fault | None, random.Random]:
        """Decide on a request."""
        is_dead = self.requests > 0
        self.requests -= is_dead
        return Fault.DROPPED if is_dead else None, random.Random(number)


@pytest.fixture(scope="module")
def dead() -> Dead:
    """Give what lets connections to the engine die."""
    return Dead()


@pytest.fixture(scope="module")
def start(engine: Engine, dead: Dead, made_table: str) -> Iterator[Start]:
    """Give a factory of execution environments for a handler; it takes modules to import first, and variables."""
    variables = {
        **engine.environment(),
        "TABLE_NAME": made_table,
        "RETRY_SECONDS": "1",
        "PYTHONPATH": os.pathsep.join(
            str(folder) for folder in (EXAMPLES / "lambda-agent", EXAMPLES, Path.cwd(), Path(__file__).parent)
        ),
    }
    with contextlib.ExitStack() as stack:
        address, _ = stack.enter_context(proxied(engine.endpoint_url, dead))
        variables["AWS_ENDPOINT_URL_DYNAMODB"] = address

        def start(handler: str, *modules: str, **others: str) -> Environment:
            process = subprocess.Popen(  # noqa: S603  # Our own program, in the interpreter of the tests.
                [sys.executable, lambda_runtime.__file__, handler, *modules],
                env={**variables, **others},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return Environment(process)

        yield start


@pytest.fixture(scope="module")
def pair(start: Start) -> Callable[[str], list[Environment]]:
    """Give two environments of a handler, which all tests use that do not end them."""
    return functools.cache(lambda handler: [start(handler), start(handler)])


@pytest.fixture
def environment(pair: Callable[[str], list[Environment]], handler: str) -> Environment:
    """Give the first of them."""
    return pair(handler)[0]


@pytest.fixture
def thread_id() -> str:
    """Give the id of a thread of the test's own."""
    return uuid.uuid4().hex


@pytest.mark.parametrize("handler", BOTH)
def test_agent_remembers_in_another_environment(
    pair: Callable[[str], list[Environment]], handler: str, thread_id: str
) -> None:
    first, second = pair(handler)
    first.invoke(thread_id=thread_id, message="first")
    result = second.invoke(thread_id=thread_id, message="second")
    assert result["reply"] == "You have told me 2 things. The first was: first"


@pytest.mark.search
def test_a_thread_of_one_handler_goes_on_in_the_other(
    pair: Callable[[str], list[Environment]], thread_id: str
) -> None:
    for count, handler in enumerate((*HANDLERS, *HANDLERS), 1):
        result = pair(handler)[0].invoke(thread_id=thread_id, message=f"{count}")
        assert result["reply"] == f"You have told me {count} things. The first was: 1"


@pytest.mark.parametrize("handler", BOTH)
def test_frozen_environment_thaws_to_dead_connections(
    environment: Environment, dead: Dead, thread_id: str
) -> None:
    environment.invoke(thread_id=thread_id, message="before")
    for thaws in (1, 2):
        with environment.frozen():
            dead.requests = 2
        result = environment.invoke(thread_id=thread_id, message=f"after {thaws}")
        assert result["reply"] == f"You have told me {1 + thaws} things. The first was: before"
        assert dead.requests == 0


@pytest.mark.search
@pytest.mark.parametrize("handler", BOTH)
def test_environment_frozen_in_the_middle_of_an_invocation_finishes_it(
    environment: Environment, dead: Dead, thread_id: str
) -> None:
    environment.invoke(thread_id=thread_id, message="before")
    environment.send(thread_id=thread_id, message="during")
    with environment.frozen():
        dead.requests = 2
    answer = environment.answer()
    assert answer["result"]["reply"] == "You have told me 2 things. The first was: before"


@pytest.mark.search
@pytest.mark.parametrize("handler", BOTH)
def test_an_event_that_comes_twice_is_heard_once(
    pair: Callable[[str], list[Environment]], handler: str, thread_id: str
) -> None:
    """In the same environment, in another one, and in two at once."""
    event = {"thread_id": thread_id, "message_id": "1", "message": "first"}
    for environment in pair(handler):
        environment.send(**event)
    answers = [environment.answer() for environment in pair(handler)]
    answers += [{"result": environment.invoke(**event)} for environment in pair(handler)]
    assert answers == [
        {"result": {"reply": "You have told me 1 things. The first was: first", "messages": 2}}
    ] * len(answers)


@pytest.mark.parametrize("handler", BOTH)
def test_failed_invocation_does_not_harm_the_next(environment: Environment, thread_id: str) -> None:
    environment.send(thread_id=thread_id)
    assert environment.answer() == {"error": "ValueError: the event needs message"}
    environment.send(thread_id="t" * 3000, message="hello")
    assert "limit" in environment.answer()["error"]
    assert environment.invoke(thread_id=thread_id, message="hello")["messages"] == 2


@pytest.mark.search
def test_a_message_that_always_exceeds_the_time_out_is_given_up_and_later_ones_are_served(
    start: Start, thread_id: str
) -> None:
    """Each attempt ends its process, which leaves nothing but the note that it had begun, whatever the handler."""
    event = {"thread_id": thread_id, "message_id": "1", "message": "hang"}
    for _ in range(3):
        victim = start(HANDLERS[0], "poisoned", LOCK_SECONDS="1")
        victim.send(**event)
        assert victim.is_dead()
    successor = start(HANDLERS[0], "poisoned", LOCK_SECONDS="1")
    reply = successor.invoke(thread_id=thread_id, message="next")["reply"]
    assert reply == "You have told me 2 things. The first was: hang"
    given_up = {"error": "This message could not be answered: 3 attempts failed.", "messages": 4}
    assert successor.invoke(**event) == given_up


@pytest.mark.search
@pytest.mark.parametrize("handler", BOTH)
def test_a_throttled_table_is_an_error_before_lambda_ends_the_process(
    start: Start, handler: str, thread_id: str
) -> None:
    """At the start nothing has the thread yet; in the middle it is to be let go, which is throttled too."""
    with scripted_server() as endpoint:
        environment = start(handler, AWS_ENDPOINT_URL_DYNAMODB=endpoint.address)
        # What is timed is an invocation, and not the start of the process.
        environment.send(thread_id=thread_id)
        assert "error" in environment.answer()
        for answered in (0, 6):
            throttled = (400, "ProvisionedThroughputExceededException")
            endpoint.script, endpoint.requests = [(200, "")] * answered + [throttled] * 10_000, []
            began = time.monotonic()
            environment.send(thread_id=thread_id, message="hello")
            answer = environment.answer()
            assert time.monotonic() - began < GIVEN_UP * (1 + ATTEMPT_SECONDS)
            assert "ProvisionedThroughputExceededException" in answer["error"]
            # A thread that is had is read next.
            assert ("Query" in endpoint.requests) == (answered > 0)


@pytest.mark.parametrize(("driver", "handler"), [("async", HANDLERS[0]), ("sync", HANDLERS[1])])
def test_the_template_runs_this_handler_under_the_agent_policy(driver: str, handler: str) -> None:
    stack = stack_of(LAMBDA, Driver=driver)
    assert stack.properties("Agent")["Handler"] == handler
    assert stack.properties("AgentRole")["ManagedPolicyArns"] == [TABLE_STACK.outputs["AgentPolicyArn"]]
    assert "dynamodb:" not in str(stack.resources)


def test_what_may_go_by_before_an_error_fits_into_the_time_out() -> None:
    """As docs/deploy.md adds it up."""
    function = stack_of(LAMBDA).properties("Agent")
    variables = function["Environment"]["Variables"]
    waiting, trying = float(variables["WAIT_SECONDS"]), float(variables["RETRY_SECONDS"])
    giving_up = GIVEN_UP * (trying + ATTEMPT_SECONDS)
    limit = load(LAMBDA)["Parameters"]["Timeout"]
    assert waiting + giving_up < limit["MinValue"] <= limit["Default"] == int(function["Timeout"])
    section = DOCUMENT.split("## Time-outs\n")[1].split("\n## ")[0]
    for row in (
        f"| {waiting:g} |",
        f"| {GIVEN_UP} * ({trying:g} + {ATTEMPT_SECONDS:g}) = {giving_up:g} |",
        f"**{waiting + giving_up:g} and the agent**",
    ):
        assert row in section
    for text in (limit["ConstraintDescription"], limit["Description"]):
        assert f"{waiting + giving_up:g}" in text
