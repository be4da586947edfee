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
from typing import TYPE_CHECKING, TypeAlias

import httpx
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


Start: TypeAlias = "Callable[..., Task]"


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
        response = httpx.request(method, f"http://127.0.0.1:{self.port}{path}", content=body, timeout=60)
        return response.status_code, response.json()

    def say(self, thread_id: str, message_id: str, text: str) -> Node:
        """Send a message that is expected to be answered."""
        body = json.dumps({"id": message_id, "text": text}).encode()
        status, answer = self.request("POST", f"/threads/{thread_id}", body)
        assert status == http.HTTPStatus.OK, answer
        return answer


@pytest.fixture(scope="module")
def start_task(engine: Engine, made_table: str) -> Iterator[Start]:
    """Give a factory of tasks; it takes for how long their model thinks."""
    with contextlib.ExitStack() as stack:

        def start(think_seconds: int = 0) -> Task:
            process = subprocess.Popen(  # Our own program, in the interpreter of the tests.
                [sys.executable, "-c", "import poisoned, service; service.main()"],
                env={
                    **engine.environment(),
                    "WAIT_SECONDS": "30",
                    "LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME": made_table,
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


@pytest.fixture(scope="module")
def task(start_task: Start) -> Task:
    """Give a task for all tests that do not end it."""
    return start_task()


def wait_for_plan(client: DynamoDBClient, table_name: str, thread_id: str) -> None:
    """Wait until the input, its first step and the plan are stored: the next step is the model's."""
    heads = 0
    while heads < 3:
        time.sleep(0.05)
        items = client.scan(TableName=table_name, ConsistentRead=True)["Items"]
        keys = [item["SK"]["S"] for item in items if item["PK"]["S"] == f"{thread_id}#"]
        heads = sum(re.fullmatch("C#[^#]*#", key) is not None for key in keys)


def test_service_remembers_and_lists_a_thread(task: Task, thread_id: str) -> None:
    assert task.request("GET", "/health") == (http.HTTPStatus.OK, {"status": "ok"})
    assert task.say(thread_id, "1", "first")["reply"] == "You have told me 1 things. The first was: first"
    assert task.say(thread_id, "2", "second")["reply"] == "You have told me 2 things. The first was: first"
    status, answer = task.request("GET", f"/threads/{thread_id}")
    assert status == http.HTTPStatus.OK
    assert [message["text"] for message in answer["messages"]][::2] == ["first", "second"]
    assert task.request("GET", "/threads/other") == (http.HTTPStatus.OK, {"messages": []})


@pytest.mark.search
@pytest.mark.parametrize("retried", [True, False], ids=["same message", "next message"])
def test_killed_in_the_middle_of_a_request_another_task_goes_on(
    start_task: Start, task: Task, client: DynamoDBClient, made_table: str, thread_id: str, *, retried: bool
) -> None:
    victim = start_task(think_seconds=3600)
    lost: list[Exception] = []

    def ask() -> None:
        try:
            victim.say(thread_id, "1", "first")
        except httpx.TransportError as error:
            lost.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_plan(client, made_table, thread_id)
    victim.process.kill()
    asking.join()
    assert lost, "the request was answered"

    if not retried:
        assert task.say(thread_id, "2", "second")["reply"].startswith("You have told me 2 things.")
    answer = task.say(thread_id, "1", "first")
    assert answer["reply"] == "You have told me 1 things. The first was: first"
    assert len(task.request("GET", f"/threads/{thread_id}")[1]["messages"]) == (2 if retried else 4)
    # The plan that the killed task stored was not made again; only the answer was.
    of_first = [step for step in answer["steps"] if "message 1" in step]
    assert of_first == [
        f"plan message 1 in process {victim.process.pid}",
        f"answer message 1 in process {task.process.pid}",
    ]


def test_a_message_that_always_fails_is_given_up_and_later_ones_are_served(
    task: Task, thread_id: str
) -> None:
    failing, later = b'{"id": "1", "text": "poison"}', b'{"id": "2", "text": "next"}'
    for body in (failing, later, failing):
        status, answer = task.request("POST", f"/threads/{thread_id}", body)
        assert status == http.HTTPStatus.SERVICE_UNAVAILABLE
        assert "the model refuses" in answer["error"]
    assert task.say(thread_id, "2", "next")["reply"].startswith("You have told me 2 things.")
    status, answer = task.request("POST", f"/threads/{thread_id}", failing)
    assert status == http.HTTPStatus.UNPROCESSABLE_ENTITY
    assert answer["error"] == "This message could not be answered: 3 attempts failed."


@pytest.mark.search
def test_messages_that_come_at_once_are_all_answered_and_kept(
    start_task: Start, task: Task, thread_id: str
) -> None:
    """In two tasks, the first of them slow."""
    tasks = [start_task(think_seconds=2), task, task]
    with ThreadPoolExecutor() as pool:
        asked = [
            pool.submit(each.say, thread_id, str(number), f"message {number}")
            for number, each in enumerate(tasks)
        ]
        replies = [each.result()["reply"] for each in asked]
    assert sorted(reply.split(" things")[0] for reply in replies) == [
        f"You have told me {count}" for count in (1, 2, 3)
    ]
    texts = [each["text"] for each in task.request("GET", f"/threads/{thread_id}")[1]["messages"]]
    assert sorted(texts[::2]) == ["message 0", "message 1", "message 2"]
    assert sorted(texts[1::2]) == sorted(replies)


@pytest.mark.search
def test_sigterm_lets_requests_under_way_finish_and_waits_for_no_client_that_sends_nothing(
    start_task: Start, client: DynamoDBClient, made_table: str, thread_id: str
) -> None:
    task, answers = start_task(think_seconds=2), list[Node]()
    [container] = stack_of("ecs.yaml").properties("TaskDefinition")["ContainerDefinitions"]
    asking = threading.Thread(target=lambda: answers.append(task.say(thread_id, "1", "first")))
    with socket.create_connection(("127.0.0.1", task.port)):
        # Whoever is answered came behind that connection, so a thread waits for it by now.
        assert task.request("GET", "/health")[0] == http.HTTPStatus.OK
        asking.start()
        wait_for_plan(client, made_table, thread_id)
        task.process.send_signal(signal.SIGTERM)
        asking.join()
        assert [answer["reply"] for answer in answers] == ["You have told me 1 things. The first was: first"]
        assert task.process.wait(timeout=container["StopTimeout"] / 2) == 0


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


def test_bad_requests_are_refused_and_the_service_lives_on(task: Task) -> None:
    for method, path, body, status in BAD_REQUESTS:
        found, answer = task.request(method, path, body)
        assert found == status
        assert answer["error"]
    assert task.request("GET", "/threads/thread") == (http.HTTPStatus.OK, {"messages": []})


def test_body_that_is_too_large_is_refused_unread(task: Task) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", task.port, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest("POST", "/threads/thread")
        connection.putheader("Content-Length", "1000001")
        connection.endheaders()
        assert connection.getresponse().status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
