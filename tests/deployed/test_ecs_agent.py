"""`infra/examples/ecs-agent`: the service as a process with real HTTP, killed in the middle of a request."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.infra.rendering import INFRA, Node
from tests.infra.stacks import stack_of
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What is tested here is the process, so one engine does, except for what a killed process leaves in the table.
pytestmark = pytest.mark.engines("dynamodb-local")
EXAMPLES = INFRA / "examples"
FOLDERS = (EXAMPLES / "ecs-agent", EXAMPLES, Path.cwd(), Path(__file__).parent)
SERVICE = "import service; service.main()"
POISONED = f"import poisoned; {SERVICE}"


class Task:
    """An ECS task: one process that serves HTTP."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until a process that runs `service.py` says on which port it serves."""
        self.process = process
        assert process.stdout is not None
        # Before it are the metrics of warm_up.
        announced = filter(None, map(re.compile(r"serving on port (\d+)\n").fullmatch, process.stdout))
        self.port = int(next(announced)[1])
        # The service writes its metrics there, and would wait where nobody takes them.
        threading.Thread(target=process.stdout.read, daemon=True).start()

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Node]:
        """Send a request; the status and the body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def say(self, thread_id: str, message_id: str, text: str) -> Node:
        """Send a message that is expected to be answered."""
        body = json.dumps({"id": message_id, "text": text}).encode()
        status, answer = self.request("POST", f"/threads/{thread_id}", body)
        assert status == http.HTTPStatus.OK, answer
        return answer


@pytest.fixture
def start_task(engine: Engine, table_name: str) -> Iterator[Callable[..., Task]]:
    """Give a factory of tasks; it takes how long their model thinks, and how long a message waits for another."""
    with contextlib.ExitStack() as stack:

        def start(think_seconds: int = 0, wait_seconds: int = 30, program: str = SERVICE) -> Task:
            process = subprocess.Popen(  # noqa: S603  # Our own program, in the interpreter of the tests.
                [sys.executable, "-c", program],
                env={
                    **engine.environment(),
                    "WAIT_SECONDS": str(wait_seconds),
                    "TABLE_NAME": table_name,
                    "HOST": "127.0.0.1",
                    "PORT": "0",
                    "THINK_SECONDS": str(think_seconds),
                    "LOCK_SECONDS": "1",
                    "PYTHONPATH": os.pathsep.join(str(folder) for folder in FOLDERS),
                },
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return Task(process)

        yield start


def wait_for_plan(client: DynamoDBClient, table_name: str) -> None:
    """Wait until the input, its first step and the plan are stored: the next step is the model's."""
    heads = 0
    while heads < 3:
        time.sleep(0.05)
        items = client.scan(TableName=table_name, ConsistentRead=True)["Items"]
        heads = sum(re.fullmatch("C#[^#]*#", item["SK"]["S"]) is not None for item in items)


def test_service_remembers_and_lists_a_thread(start_task: Callable[..., Task]) -> None:
    task = start_task()
    assert task.request("GET", "/health") == (http.HTTPStatus.OK, {"status": "ok"})
    assert task.say("thread", "1", "first")["reply"] == "You have told me 1 things. The first was: first"
    assert task.say("thread", "2", "second")["reply"] == "You have told me 2 things. The first was: first"
    status, answer = start_task().request("GET", "/threads/thread")
    assert status == http.HTTPStatus.OK
    assert [message["text"] for message in answer["messages"]][::2] == ["first", "second"]
    assert task.request("GET", "/threads/other") == (http.HTTPStatus.OK, {"messages": []})


@pytest.mark.search
@pytest.mark.parametrize("retried", [True, False], ids=["same message", "next message"])
def test_killed_in_the_middle_of_a_request_another_task_goes_on(
    start_task: Callable[..., Task], client: DynamoDBClient, table_name: str, *, retried: bool
) -> None:
    victim = start_task(think_seconds=3600)
    lost: list[Exception] = []

    def ask() -> None:
        try:
            victim.say("thread", "1", "first")
        except (OSError, http.client.HTTPException) as error:
            lost.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_plan(client, table_name)
    victim.process.kill()
    asking.join()
    assert lost, "the request was answered"

    successor = start_task()
    if not retried:
        assert successor.say("thread", "2", "second")["reply"].startswith("You have told me 2 things.")
    answer = successor.say("thread", "1", "first")
    assert answer["reply"] == "You have told me 1 things. The first was: first"
    assert len(successor.request("GET", "/threads/thread")[1]["messages"]) == (2 if retried else 4)
    # The plan that the killed task stored was not made again; only the answer was.
    of_first = [step for step in answer["steps"] if "message 1" in step]
    assert of_first == [
        f"plan message 1 in process {victim.process.pid}",
        f"answer message 1 in process {successor.process.pid}",
    ]


def test_a_message_that_always_fails_is_given_up_and_later_ones_are_served(
    start_task: Callable[..., Task],
) -> None:
    task = start_task(program=POISONED)
    failing, later = b'{"id": "1", "text": "poison"}', b'{"id": "2", "text": "next"}'
    for body in (failing, later, failing):
        status, answer = task.request("POST", "/threads/thread", body)
        assert status == http.HTTPStatus.SERVICE_UNAVAILABLE
        assert "the model refuses" in answer["error"]
    assert task.say("thread", "2", "next")["reply"].startswith("You have told me 2 things.")
    status, answer = task.request("POST", "/threads/thread", failing)
    assert status == http.HTTPStatus.UNPROCESSABLE_ENTITY
    assert answer["error"] == "This message could not be answered: 3 attempts failed."


@pytest.mark.search
def test_a_client_that_sends_nothing_does_not_keep_a_task_from_ending_in_time(
    start_task: Callable[..., Task],
) -> None:
    task = start_task()
    stack = stack_of("examples/ecs-agent/template.yaml")
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    with socket.create_connection(("127.0.0.1", task.port)):
        # Whoever is answered came behind that connection, so a thread waits for it by now.
        assert task.request("GET", "/health")[0] == http.HTTPStatus.OK
        task.process.send_signal(signal.SIGTERM)
        assert task.process.wait(timeout=container["StopTimeout"] / 2) == 0


@pytest.mark.search
def test_messages_that_come_at_once_are_all_answered_and_kept(start_task: Callable[..., Task]) -> None:
    """Each in a task of its own, the first of them slow."""
    tasks = [start_task(think_seconds=2), start_task(), start_task()]
    with ThreadPoolExecutor() as pool:
        asked = [
            pool.submit(task.say, "thread", str(number), f"message {number}")
            for number, task in enumerate(tasks)
        ]
        replies = [each.result()["reply"] for each in asked]
    assert sorted(reply.split(" things")[0] for reply in replies) == [
        f"You have told me {count}" for count in (1, 2, 3)
    ]
    texts = [each["text"] for each in tasks[0].request("GET", "/threads/thread")[1]["messages"]]
    assert sorted(texts[::2]) == ["message 0", "message 1", "message 2"]
    assert sorted(texts[1::2]) == sorted(replies)


def test_sigterm_lets_requests_under_way_finish(
    start_task: Callable[..., Task], client: DynamoDBClient, table_name: str
) -> None:
    task = start_task(think_seconds=2)
    answers: list[Node] = []
    asking = threading.Thread(target=lambda: answers.append(task.say("thread", "1", "first")))
    asking.start()
    wait_for_plan(client, table_name)
    task.process.send_signal(signal.SIGTERM)
    asking.join()
    assert [answer["reply"] for answer in answers] == ["You have told me 1 things. The first was: first"]
    assert task.process.wait(timeout=60) == 0


BAD_REQUESTS = [
    ("GET", "/", None, http.HTTPStatus.NOT_FOUND),
    ("GET", "/threads/", None, http.HTTPStatus.NOT_FOUND),
    ("POST", "/other/thread", b"{}", http.HTTPStatus.NOT_FOUND),
    ("POST", "/threads/thread", b"", http.HTTPStatus.BAD_REQUEST),
    ("POST", "/threads/thread", b"{", http.HTTPStatus.BAD_REQUEST),
    ("POST", "/threads/thread", b"[]", http.HTTPStatus.BAD_REQUEST),
    ("POST", "/threads/thread", b'{"id": "1"}', http.HTTPStatus.BAD_REQUEST),
    ("POST", "/threads/thread", b'{"id": 1, "text": "x"}', http.HTTPStatus.BAD_REQUEST),
]


def test_bad_requests_are_refused_and_the_service_lives_on(start_task: Callable[..., Task]) -> None:
    task = start_task()
    for method, path, body, status in BAD_REQUESTS:
        found, answer = task.request(method, path, body)
        assert found == status
        assert answer["error"]
    assert task.request("GET", "/threads/thread") == (http.HTTPStatus.OK, {"messages": []})


def test_body_that_is_too_large_is_refused_unread(start_task: Callable[..., Task]) -> None:
    task = start_task()
    connection = http.client.HTTPConnection("127.0.0.1", task.port, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest("POST", "/threads/thread")
        connection.putheader("Content-Length", "1000001")
        connection.endheaders()
        assert connection.getresponse().status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
