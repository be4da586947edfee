"""docs/runbook.md, "Errors by message", lists what somebody sees: each row has a test that produces its message."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import BotoCoreError
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import CheckpointerError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._operations import thread_lock
from langgraph.checkpoint.dynamodb._runtime import attempts
from tests.support.checkpoints import all_items, noise, store, thread_config
from tests.support.documents import read
from tests.support.other_tables import without_indexes
from tests.support.scripted import DROPPED, scripted_server

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

SECTION = read("docs/runbook.md").split("## Errors by message\n")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| `(.+?)`.* \| .+ \|$", SECTION, re.MULTILINE)
NEWEST = thread_config()


@dataclass(frozen=True)
class Scene:
    """What a symptom is produced with."""

    engine: Engine
    client: DynamoDBClient
    table_name: str
    make_saver: Callable[..., DynamoDBSaver]
    monkeypatch: pytest.MonkeyPatch
    caplog: pytest.LogCaptureFixture
    folder: Path


Symptom = Callable[[Scene], str]


def _said(ask: Callable[[], object]) -> str:
    """The error that something is."""
    with pytest.raises((CheckpointerError, BotoCoreError, ValueError)) as raised:
        ask()
    return str(raised.value)


def _reading(**options: Any) -> str:
    with DynamoDBSaver("the-table", **options) as saver:
        return _said(lambda: saver.get_tuple(NEWEST))


def _no_table(scene: Scene) -> str:
    saver = DynamoDBSaver("no-such-table", endpoint_url=scene.engine.endpoint_url)
    with saver:
        return _said(lambda: saver.get_tuple(NEWEST))


def _no_region(scene: Scene) -> str:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        scene.monkeypatch.delenv(name)
    return _reading()


def _no_credentials(scene: Scene) -> str:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        scene.monkeypatch.delenv(name)
    return _reading(endpoint_url=scene.engine.endpoint_url)


def _answered(code: str) -> Symptom:
    """What is seen where AWS answers with an error."""

    def produce(_: Scene) -> str:
        with scripted_server() as endpoint:
            endpoint.always = (400, code)
            return _reading(endpoint_url=endpoint.address)

    return produce


def _hurry(scene: Scene) -> None:
    """Let attempts go by a clock that makes an outage a long one."""
    clock = SimpleNamespace(monotonic=count(step=limits.RETRY_SECONDS_QUIET + 1).__next__)
    scene.monkeypatch.setattr(attempts, "time", clock)
    scene.monkeypatch.setattr(attempts, "BACKOFF_SECONDS_MAX", 0.01)
    scene.monkeypatch.setattr(attempts, "_silent_until", 0.0)


def _logged(scene: Scene, read: Callable[[], object]) -> str:
    """What is logged of an outage, by a clock that makes it a long one."""
    _hurry(scene)
    with scene.caplog.at_level(logging.WARNING, logger=attempts.__name__):
        read()
    return scene.caplog.records[0].getMessage()


def _refused(_: Scene) -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return _reading(endpoint_url=f"http://127.0.0.1:{unused.getsockname()[1]}")


def _no_answer(scene: Scene) -> str:
    with scripted_server() as endpoint:
        endpoint.always = DROPPED
        return _logged(scene, lambda: _reading(endpoint_url=endpoint.address))


def _gave_up(scene: Scene) -> str:
    with scripted_server() as endpoint:
        endpoint.always = (400, "ProvisionedThroughputExceededException")
        _hurry(scene)
        return _reading(endpoint_url=endpoint.address)


def _no_index(scene: Scene) -> str:
    name = f"{scene.table_name}-old"
    scene.client.create_table(**without_indexes(name))
    with DynamoDBSaver(name, endpoint_url=scene.engine.endpoint_url) as saver:
        said = _said(saver.threads)
    scene.client.delete_table(TableName=name)
    return said


def _other_keys(scene: Scene) -> str:
    name = f"{scene.table_name}-other"
    scene.client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with DynamoDBSaver(name, endpoint_url=scene.engine.endpoint_url) as saver:
        said = _said(lambda: saver.get_tuple(NEWEST))
    scene.client.delete_table(TableName=name)
    return said


def _of_another_saver(scene: Scene) -> str:
    item = {"PK": {"S": "CHECKPOINT_thread-1"}, "SK": {"S": "#1f1e6347-28d2-60b2-bffe-aa96229c3901"}}
    scene.client.put_item(TableName=scene.table_name, Item=item)
    return _said(lambda: scene.make_saver().get_tuple(NEWEST))


def _graph(scene: Scene) -> Any:
    builder = StateGraph(MessagesState).add_node("answer", lambda _: {"messages": [("ai", "Yes.")]})
    return builder.add_edge(START, "answer").compile(checkpointer=scene.make_saver())


def _no_thread_id(scene: Scene) -> str:
    return _said(lambda: _graph(scene).invoke({"messages": [("user", "Hello")]}))


def _forgotten(scene: Scene) -> str:
    graph = _graph(scene)
    graph.invoke({"messages": [("user", "Hello")]}, thread_config())
    return str(graph.get_state(thread_config("Thread-1")))


def _no_data(scene: Scene) -> str:
    return _said(lambda: store(scene.make_saver(), NEWEST, "1", {"lock": threading.Lock()}))


@dataclass
class Order:
    """A dataclass of an agent that LangGraph was not told of."""

    number: int


def _unregistered(scene: Scene) -> str:
    scene.monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    store(scene.make_saver(), NEWEST, "1", {"order": Order(1)})
    with scene.caplog.at_level(logging.WARNING):
        scene.make_saver().get_tuple(NEWEST)
    return scene.caplog.text


def _too_large(scene: Scene) -> str:
    saver = scene.make_saver(checkpoint_bytes_max=100_000)
    return _said(lambda: store(saver, NEWEST, "1", {"x": noise(150_000)}))


def _with_key(key: bytes) -> dict[str, EncryptedSerializer]:
    return {"serde": EncryptedSerializer.from_pycryptodome_aes(key=key)}


def _read_with(stored: dict[str, Any], read: dict[str, Any]) -> Symptom:
    """What is seen where a thread is read with another serializer than it was stored with."""

    def produce(scene: Scene) -> str:
        store(scene.make_saver(**stored), NEWEST, "1", {"x": "y"})
        return _said(lambda: scene.make_saver(**read).get_tuple(NEWEST))

    return produce


KEY, OTHER_KEY = _with_key(b"0123456789abcdef"), _with_key(b"fedcba9876543210")


def _ownerless(scene: Scene) -> str:
    with scene.caplog.at_level(logging.WARNING):
        store(scene.make_saver(owner_from="userid"), NEWEST, "1", {"x": "y"})
    return scene.caplog.text


def _lost(scene: Scene) -> str:
    scene.monkeypatch.setattr(thread_lock, "LOCK_SKEW_SECONDS", 0)
    saver = scene.make_saver()

    def block() -> None:
        with saver.thread_lock("t") as lock:
            (item,) = all_items(scene.client, scene.table_name)
            scene.client.put_item(TableName=scene.table_name, Item={**item, "holder": {"B": b"another"}})
            lock.check()

    return _said(block)


SYMPTOMS: dict[str, Symptom] = {
    "table ... does not exist in this account and region": _no_table,
    "no AWS region for table ...": _no_region,
    "no usable AWS credentials for table ...": _no_credentials,
    "the AWS credentials for table ... have expired": _answered("ExpiredTokenException"),
    "access to table ... was denied for dynamodb:Query": _answered("AccessDeniedException"),
    "no answer from DynamoDB for table ...": _no_answer,
    "nothing listens at ... for table ...": _refused,
    "Gave up after ... attempts in ... s": _gave_up,
    "table ... has another key schema than PK and SK as strings": _other_keys,
    "table ... has no index ... that can be queried": _no_index,
    "table ... holds checkpoints of langgraph-checkpoint-aws": _of_another_saver,
    "Checkpointer requires one or more of the following 'configurable' keys: thread_id": _no_thread_id,
    "StateSnapshot(values={}, next=()": _forgotten,
    "channel ... cannot be serialized: ...; it was not stored": _no_data,
    "Deserializing unregistered type ... from checkpoint": _unregistered,
    "needs over 100000 bytes of memory, serialized": _too_large,
    "is encrypted with 'aes', and the saver has no cipher": _read_with(KEY, {}),
    "cannot be decrypted with the saver's key": _read_with(KEY, OTHER_KEY),
    "is not encrypted, or not for its place, but the saver has a cipher": _read_with({}, KEY),
    "data that was encrypted for another place": _read_with(KEY, {**KEY, "bound_to": "before"}),
    "Thread ... enters the directory without an owner": _ownerless,
    "thread ... is no longer held": _lost,
}


@pytest.fixture
def scene(
    engine: Engine,
    client: DynamoDBClient,
    table_name: str,
    make_saver: Callable[..., DynamoDBSaver],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> Iterator[Scene]:
    """Give a table, and what breaks it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Scene(engine, client, table_name, make_saver, monkeypatch, caplog, tmp_path)


def test_the_document_lists_what_is_produced_here() -> None:
    assert list(SYMPTOMS) == ROWS


@pytest.mark.parametrize("quoted", ROWS)
def test_a_symptom_is_what_the_document_quotes(quoted: str, scene: Scene) -> None:
    words = ".*".join(map(re.escape, quoted.split("...")))
    assert re.search(words, SYMPTOMS[quoted](scene), re.DOTALL)
