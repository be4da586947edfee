"""A thread that is sealed in the client stays what it is: nobody can copy it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import checkpoint_of, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")
CIPHER = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")


def test_a_client_that_seals_copies_nothing(make_remote: Callable[..., HttpCheckpointSaver]) -> None:
    remote = make_remote(serde=CIPHER)
    remote.put(thread_config("source"), checkpoint_of("1", {"x": "secret"}), {}, {"x": 1})
    with pytest.raises(CheckpointerConfigurationError, match=r"sealed for their thread.*update_state"):
        remote.copy_thread("source", "target")
    assert remote.get_tuple(thread_config("target")) is None


def test_what_the_service_copies_cannot_be_read(make_remote: Callable[..., HttpCheckpointSaver]) -> None:
    remote, without_key = make_remote(serde=CIPHER), make_remote()
    remote.put(thread_config("source"), checkpoint_of("1", {"x": "secret"}), {}, {"x": 1})
    without_key.copy_thread("source", "target")
    with pytest.raises(CheckpointCorruptionError, match="thread 'target' has data that was encrypted for"):
        remote.get_tuple(thread_config("target"))
