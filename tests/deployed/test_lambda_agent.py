"""`infra/examples/lambda-agent`, run as Lambda runs it: in processes that import it once and are frozen in between."""

import contextlib
import functools
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._runtime.clients import default_config
from tests.chaos.faults import Fault, Faults
from tests.chaos.proxy import proxied
from tests.deployed.lambda_environment import Environment
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


Start: TypeAlias = Callable[..., Environment]


def event(thread_id: str, text: str, message_id: str | None = None) -> dict[str, str]:
    """An event with a message."""
    return {"thread_id": thread_id, "message": text, "message_id": message_id or uuid.uuid4().hex}


def say(environment: Environment, thread_id: str, text: str) -> Node:
    """Send a message that is expected to be answered."""
    environment.send(event(thread_id, text))
    answer = environment.answer()
    assert "result" in answer, answer
    return answer["result"]


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
            return stack.enter_context(Environment.running(handler, {**variables, **others}, *modules))

        yield start


@pytest.fixture(scope="module")
def pair(start: Start) -> Callable[[str], list[Environment]]:
    """Give two environments of a handler, which all tests use that do not end them."""
    return functools.cache(lambda handler: [start(handler), start(handler)])


@pytest.fixture
def environment(pair: Callable[[str], list[Environment]], handler: str) -> Environment:
    """Give the first of them."""
    return pair(handler)[0]


@pytest.mark.parametrize("handler", BOTH)
def test_agent_remembers_in_another_environment(
    pair: Callable[[str], list[Environment]], handler: str, thread_id: str
) -> None:
    first, second = pair(handler)
    say(first, thread_id, "first")
    result = say(second, thread_id, "second")
    assert result["reply"] == "You have told me 2 things. The first was: first"


@pytest.mark.parametrize("handler", BOTH)
def test_frozen_environment_thaws_to_dead_connections(
    environment: Environment, dead: Dead, thread_id: str
) -> None:
    say(environment, thread_id, "before")
    for thaws in (1, 2):
        with environment.frozen():
            dead.requests = 2
        result = say(environment, thread_id, f"after {thaws}")
        assert result["reply"] == f"You have told me {1 + thaws} things. The first was: before"
        assert dead.requests == 0


@pytest.mark.search
@pytest.mark.parametrize("handler", BOTH)
def test_an_event_that_comes_twice_is_heard_once(
    pair: Callable[[str], list[Environment]], handler: str, thread_id: str
) -> None:
    """In the same environment, in another one, and in two at once."""
    answers = []
    for _ in range(2):
        for environment in pair(handler):
            environment.send(event(thread_id, "first", "1"))
        answers += [environment.answer() for environment in pair(handler)]
    assert answers == [
        {"result": {"reply": "You have told me 1 things. The first was: first", "messages": 2}}
    ] * len(answers)


@pytest.mark.parametrize("handler", BOTH)
def test_failed_invocation_does_not_harm_the_next(environment: Environment, thread_id: str) -> None:
    environment.send({"thread_id": thread_id, "message_id": "1"})
    assert environment.answer() == {"error": "ValueError: the event needs message"}
    environment.send(event("t" * 3000, "hello"))
    assert "limit" in environment.answer()["error"]
    assert say(environment, thread_id, "hello")["messages"] == 2


@pytest.mark.search
def test_a_message_that_always_exceeds_the_time_out_is_given_up_and_later_ones_are_served(
    start: Start, thread_id: str
) -> None:
    """Each attempt ends its process, which leaves nothing but the note that it had begun, whatever the handler."""
    hanging = event(thread_id, "hang")
    for _ in range(3):
        victim = start(HANDLERS[0], "poisoned", LOCK_SECONDS="1")
        victim.send(hanging)
        assert victim.answer() is None
    successor = start(HANDLERS[0], "poisoned", LOCK_SECONDS="1")
    reply = say(successor, thread_id, "next")["reply"]
    assert reply == "You have told me 2 things. The first was: hang"
    given_up = {"error": "This message could not be answered: 3 attempts failed.", "messages": 4}
    successor.send(hanging)
    assert successor.answer() == {"result": given_up}


@pytest.mark.search
@pytest.mark.parametrize("handler", BOTH)
def test_a_throttled_table_is_an_error_before_lambda_ends_the_process(
    start: Start, handler: str, thread_id: str
) -> None:
    """At the start nothing has the thread yet; in the middle it is to be let go, which is throttled too."""
    with scripted_server() as endpoint:
        environment = start(handler, AWS_ENDPOINT_URL_DYNAMODB=endpoint.address)
        # What is timed is an invocation, and not the start of the process.
        environment.send({"thread_id": thread_id})
        assert "error" in environment.answer()
        for answered in (0, 6):
            throttled = (400, "ProvisionedThroughputExceededException")
            endpoint.script, endpoint.requests = [(200, "")] * answered + [throttled] * 10_000, []
            began = time.monotonic()
            environment.send(event(thread_id, "hello"))
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
