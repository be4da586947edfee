"""`history`: a thread's checkpoints with their forks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.cli.conftest import Run
from tests.support.checkpoints import store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


def test_checkpoints_are_listed_and_a_fork_says_what_it_continues(run: Run, table: str) -> None:
    shown = run("history", "forked", "--table", table).out.splitlines()
    found = run("history", "forked", "--table", table, "--json").json
    assert [each["metadata"]["source"] for each in found] == ["update", *["loop"] * 6, "input"]
    assert found[0]["parent_id"] == found[3]["checkpoint_id"]
    assert found[0]["stored_at"] > found[1]["stored_at"]
    assert [each.split()[0] for each in shown] == [each["checkpoint_id"] for each in found]
    assert [number for number, each in enumerate(shown) if "continues" in each] == [0]
    assert shown[0].endswith(f"step 4, update  continues {found[3]['checkpoint_id']}")
    assert "1 task with writes" in shown[-1]


def test_what_waits_and_what_has_failed_are_marked(run: Run, table: str) -> None:
    assert "WAITING FOR A HUMAN" in run("history", "waiting", "--table", table).out
    nested = run("history", "nested", "--table", table)
    assert "Other namespaces: 'middle:" in nested.err
    namespace = nested.err.split("'")[1]
    inner = run("history", "nested", "--table", table, "--namespace", namespace)
    assert "step 0, loop" in inner.out


def test_a_limit_shows_the_newest_and_says_so(run: Run, table: str) -> None:
    ended = run("history", "chat", "--table", table, "--limit", "2")
    assert len(ended.out.splitlines()) == 2
    assert "There are older ones" in ended.err
    assert "There are older ones" not in run("history", "chat", "--table", table, "--limit", "7").err


@pytest.mark.parametrize("more", [(), ("--namespace", "other")])
def test_a_thread_that_is_not_there_is_not_found(run: Run, table: str, more: tuple[str, ...]) -> None:
    ended = run("history", "nobody" if not more else "chat", "--table", table, *more)
    assert ended.code == 3
    assert "has no checkpoint" in ended.err


def test_without_the_key_the_tree_is_shown_and_with_it_the_steps(
    run: Run,
    make_table: Callable[[], str],
    open_saver: Callable[..., DynamoDBSaver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = make_table()
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    store(open_saver(table, serde=serde), thread_config("secret"), "1", {"text": "x"})
    assert run("history", "secret", "--table", table).out == "1  encrypted\n"
    assert run("show", "secret", "--table", table).code == 4
    monkeypatch.setenv("THE_KEY", "0123456789abcdef")
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_TYPE", "dynamodb")
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_CONFIG__ENCRYPTION_KEY__ENVIRONMENT", "THE_KEY")
    assert run("history", "secret", "--table", table).out == "1  step 1, loop\n"
    assert run("show", "secret", "--table", table, "--json").json["values"] == {"text": "x"}
