"""The service makes no object of what a client sends, and its log names no thread that a client stores."""

import base64
import json
import pickle
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, create_gateway
from tests.conftest import MakeSaver
from tests.gateway.conftest import by_token, send_as
from tests.gateway.test_labels import PRINCIPALS

pytestmark = pytest.mark.engines("dynamodb-local")

# LangGraph's serializer makes objects of both.
MADE = {
    "lc": 2,
    "type": "constructor",
    "id": ["langchain_core", "messages", "human", "HumanMessage"],
    "kwargs": {"content": "x"},
}
LOADED = {**MADE, "lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"]}
TYPED = {"type": "json", "data": base64.b64encode(json.dumps([MADE, LOADED]).encode()).decode()}
PICKLED = {"type": "pickle", "data": base64.b64encode(pickle.dumps(print)).decode()}
CALLED = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", "true"))))
EXTENSION = {"type": "msgpack", "data": base64.b64encode(CALLED).decode()}
TEXT = json.dumps({"a": MADE, "b": LOADED})
METADATA = {"type": "json", "data": base64.b64encode(TEXT.encode()).decode()}
AT = {"namespace": ["n"], "key": "k"}
VERSIONS = {"x": 1, "pickled": 1, "called": 1}
PUT = {
    "thread_id": "t",
    "checkpoint": {"id": "1", "a": MADE, "b": LOADED, "channel_versions": VERSIONS},
    "metadata": {"a": MADE},
    "new_versions": VERSIONS,
    "values": {"x": TYPED, "pickled": PICKLED, "called": EXTENSION},
    "listed": True,
}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("checkpoints/put", PUT),
    ("checkpoints/put", {**PUT, "thread_id": "typed", "typed_metadata": METADATA}),
    (
        "checkpoints/put-writes",
        {"thread_id": "t", "checkpoint_id": "1", "task_id": "task", "writes": [["x", TYPED]]},
    ),
    ("checkpoints/set-thread", {"thread_id": "t", "metadata": {"a": MADE, "b": LOADED}}),
    ("checkpoints/threads", {"metadata": {"a": MADE}}),
    *(("checkpoints/get-tuple", {"thread_id": thread}) for thread in ("t", "typed")),
    ("checkpoints/list", {"thread_id": "typed", "filter": {"a": MADE}}),
    ("checkpoints/list", {"filter": {"a": MADE}}),
    ("checkpoints/delta-channel-history", {"thread_id": "t", "checkpoint_id": "1", "channels": ["x"]}),
    ("checkpoints/copy-thread", {"source_thread_id": "t", "target_thread_id": "copy"}),
    ("checkpoints/runs", {"thread_id": "t"}),
    ("checkpoints/prune", {"thread_id": "t"}),
    ("store/batch", {"ops": [{"op": "put", **AT, "value": TEXT}]}),
    (
        "store/batch",
        {"ops": [{"op": "get", **AT}, {"op": "search", "namespace_prefix": ["n"], "filter": TEXT}]},
    ),
    ("cache/set", {"entries": [{**AT, **TYPED}]}),
    ("cache/get", {"keys": [AT]}),
]


async def test_no_object_is_made_of_what_a_client_sends(
    make_saver: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    loads_typed = JsonPlusSerializer.loads_typed

    def noted(serde: JsonPlusSerializer, data: tuple[str, bytes]) -> Any:
        if type(serde) is JsonPlusSerializer:
            made.append(data)
        return loads_typed(serde, data)

    monkeypatch.setattr(JsonPlusSerializer, "loads_typed", noted)
    monkeypatch.setattr(jsonplus, "LC_REVIVER", made.append)
    for name, request in REQUESTS:
        # A new one each time, which remembers nothing.
        gateway = create_gateway(make_saver(), authenticate=by_token(PRINCIPALS))
        answer = await send_as(gateway, "admin", f"/{name}", request)
        assert answer.status_code == 200, (name, answer.text)
    assert made == []


async def test_the_log_does_not_name_a_thread_that_enters_the_directory(
    make_saver: MakeSaver, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether a thread without an owner is a mistake, the client knows, and the saver of the service does not."""
    gateway = create_gateway(make_saver(owner_from="user_id"), authenticate=by_token(PRINCIPALS))
    answer = await send_as(gateway, "all", "/checkpoints/put", {**PUT, "thread_id": "secret"})
    assert answer.status_code == 200
    assert "secret" not in caplog.text


def test_a_cipher_that_may_not_be_all_is_refused() -> None:
    class Twice(EncryptedSerializer):
        """Encrypts once more in a way of its own."""

    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    saver = DynamoDBSaver("threads", serde=Twice(serde.cipher, serde.serde))
    with pytest.raises(CheckpointerConfigurationError, match="the gateway's saver has a Twice"):
        create_gateway(saver, authenticate=anybody_on_this_machine)
