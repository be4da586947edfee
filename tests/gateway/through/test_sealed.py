"""A client with the key seals what it stores: a graph sees no difference, nobody else reads it, and a step is cheap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from benchmarks.sealing import VARIANTS, turns_of
from benchmarks.workloads import chat
from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import all_items, checkpoint_of, thread_config
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# An engine stores bytes, whoever made them.
pytestmark = pytest.mark.engines("dynamodb-local")

CIPHER = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")

MakeRemote = Callable[..., HttpCheckpointSaver]


def test_nothing_of_a_value_is_readable(
    make_remote: MakeRemote, client: DynamoDBClient, table_name: str
) -> None:
    saver, secret = make_remote(serde=CIPHER), "the secret of the agent"
    metadata: Any = {"source": "loop", "step": 1, "note": secret}
    values = {"small": secret, "large": [secret] * 1_000}
    config = saver.put(thread_config(), checkpoint_of("1", values), metadata, {"small": 1, "large": 1})
    saver.put_writes(config, [("small", secret), ("large", [secret] * 1_000)], "task")
    found = make_remote(serde=CIPHER).get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert found.metadata == metadata
    stored = all_items(client, table_name)
    assert stored
    assert not [each for each in stored if "secret" in str(each)]


def test_a_client_that_seals_copies_nothing(make_remote: MakeRemote) -> None:
    remote = make_remote(serde=CIPHER)
    remote.put(thread_config("source"), checkpoint_of("1", {"x": "secret"}), {}, {"x": 1})
    with pytest.raises(CheckpointerConfigurationError, match=r"sealed for their thread.*update_state"):
        remote.copy_thread("source", "target")
    assert remote.get_tuple(thread_config("target")) is None


def test_what_the_service_copies_cannot_be_read(make_remote: MakeRemote) -> None:
    remote, without_key = make_remote(serde=CIPHER), make_remote()
    remote.put(thread_config("source"), checkpoint_of("1", {"x": "secret"}), {}, {"x": 1})
    # Whoever runs the service gives it to a thread of their own.
    without_key.copy_thread("source", "target")
    with pytest.raises(CheckpointCorruptionError, match="thread 'target' has data that was encrypted for"):
        remote.get_tuple(thread_config("target"))


def test_a_step_costs_what_it_adds(engine: Engine) -> None:
    # A state whose sealed bytes fit into the head is stored with each step: that is what the first turns cost.
    runs = {name: turns_of(engine, chat(14), **options) for name, options in VARIANTS.items()}
    late = {name: turns[-1].write_units - turns[11].write_units for name, turns in runs.items()}
    assert late["sealed"] < 1.5 * late["readable"]
    assert late["new bytes each time"] > 5 * late["readable"]
    assert runs["sealed"][-1].read_units < 1.1 * runs["readable"][-1].read_units
