"""A program with plain thread ids runs with a tenant's token, once the client knows the prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, HttpStore
from tests.conftest import MakeSaver
from tests.gateway.through.conftest import Serve
from tests.support.checkpoints import store, thread_config

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

pytestmark = pytest.mark.engines("dynamodb-local")


def _threads(saver: BaseCheckpointSaver[Any]) -> list[str]:
    return sorted({each.config["configurable"]["thread_id"] for each in saver.list(None)})


def test_all_threads_and_those_of_a_run_are_those_with_the_prefix(
    serve: Serve, make_saver: MakeSaver
) -> None:
    for thread in ("acme/1", "acme2/1", "1"):
        store(make_saver(), thread_config(thread), "1", {}, run_id="run")
    with HttpCheckpointSaver(serve(), thread_prefix="acme/") as remote:
        assert _threads(remote) == ["1"]
        assert len(list(remote.list(None, limit=1))) == 1
        remote.delete_for_runs(["run"])
        assert _threads(remote) == []
    assert _threads(make_saver()) == ["1", "acme2/1"]


def test_an_owner_is_deleted_within_the_prefix(serve: Serve, make_saver: MakeSaver) -> None:
    saver = make_saver()
    for thread, owner in {"acme/1": "acme/ada", "acme/2": "acme/bob", "1": "ada"}.items():
        store(saver, thread_config(thread), "1", {})
        saver.set_thread(thread, owner=owner)
    url = serve()
    with HttpCheckpointSaver(url, thread_prefix="acme/") as remote:
        with HttpStore(url) as memories:
            memories.put(("users", "ada"), "food", {"likes": "pizza"})
            report = remote.delete_owner("ada", memories=[("users", "{owner}")], store=memories)
            assert memories.search(()) == []
        assert (report.deleted, report.failed, report.memories) == (["1"], {}, 1)
        assert remote.delete_owner("ada").deleted == []
    assert _threads(saver) == ["1", "acme/2"]
    assert saver.delete_owner("ada").deleted == ["1"]
