"""A thread that only the client can open is copied by it, with its namespaces and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import checkpoint_of, thread_config

WRITES = [("x", 1), ("__interrupt__", "what?"), ("__error__", "none")]


@pytest.mark.engines("dynamodb-local")
def test_an_encrypted_copy_is_as_its_source(make_remote: Callable[..., HttpCheckpointSaver]) -> None:
    remote = make_remote(serde=EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef"))
    metadata: Any = {"source": "loop", "step": 1}
    for namespace in ("", "inner"):
        stored = remote.put(
            thread_config("source", namespace), checkpoint_of("1", {"x": namespace}), metadata, {"x": 1}
        )
        remote.put_writes(stored, WRITES, "task", "path")
        remote.put(stored, checkpoint_of("2", {"x": namespace}), metadata, {})
    remote.copy_thread("source", "target")
    # What it has meanwhile does not stay beside what is copied again.
    remote.put_writes(thread_config("target", "", "1"), [*WRITES, ("y", 2)], "task", "path")
    remote.copy_thread("source", "target")
    found, copied = (
        [
            (
                each.config["configurable"]["checkpoint_ns"],
                each.checkpoint,
                each.metadata,
                each.parent_config and each.parent_config["configurable"]["checkpoint_id"],
                each.pending_writes,
            )
            for each in remote.list({"configurable": {"thread_id": thread}})
        ]
        for thread in ("source", "target")
    )
    assert len(found) == 4
    assert found == copied
    assert [write for *_, writes in copied for write in writes or ()]
