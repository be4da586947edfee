"""A thread that only the client can open is copied by it, with its namespaces and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import checkpoint_of, thread_config

CIPHER = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
WRITES = [("x", 1), ("__interrupt__", "what?"), ("__error__", "none")]


@pytest.mark.engines("dynamodb-local")
def test_an_encrypted_copy_is_as_its_source(make_remote: Callable[..., HttpCheckpointSaver]) -> None:
    remote = make_remote(serde=CIPHER)
    metadata: Any = {"source": "loop", "step": 1}
    for namespace in ("", "inner"):
        stored = remote.put(
            thread_config("source", namespace), checkpoint_of("1", {"x": namespace}), metadata, {"x": 1}
        )
        remote.put_writes(stored, WRITES, "task", "path")
        remote.put(stored, checkpoint_of("2", {"x": namespace}), metadata, {})
    remote.copy_thread("source", "target")
    # A copy that broke off is repeated.
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


@pytest.mark.engines("dynamodb-local")
def test_a_thread_without_checkpoints_cannot_be_copied(
    make_remote: Callable[..., HttpCheckpointSaver],
) -> None:
    with pytest.raises(CheckpointNotFoundError, match="thread 'none' has no checkpoint to copy"):
        make_remote(serde=CIPHER).copy_thread("none", "target")


@pytest.mark.engines("dynamodb-local")
def test_what_the_service_copies_cannot_be_read(make_remote: Callable[..., HttpCheckpointSaver]) -> None:
    remote, without_key = make_remote(serde=CIPHER), make_remote()
    remote.put(thread_config("source"), checkpoint_of("1", {"x": "secret"}), {}, {"x": 1})
    without_key.copy_thread("source", "target")
    with pytest.raises(CheckpointCorruptionError, match="thread 'target' has data that was encrypted for"):
        remote.get_tuple(thread_config("target"))


@pytest.mark.engines("dynamodb-local")
def test_a_long_thread_is_copied_page_by_page(
    make_remote: Callable[..., HttpCheckpointSaver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.http.operations._PAGE_MAX", 2)
    remote, config = make_remote(serde=CIPHER), thread_config("source")
    for step in range(5):
        checkpoint = checkpoint_of(f"{step}", {"log": "x" * 3000 * step, "kept": 1})
        checkpoint["channel_versions"] = {"log": step + 1, "kept": 1}
        new: dict[str, str | int | float] = {"log": step + 1} if step else {"log": 1, "kept": 1}
        config = remote.put(config, checkpoint, {"step": step}, new)
    remote.copy_thread("source", "target")
    found, copied = (
        [(each.checkpoint, each.metadata) for each in remote.list(thread_config(thread))]
        for thread in ("source", "target")
    )
    assert len(found) == 5
    assert found == copied
