"""`history` and `diff`: a thread's tree with its forks, and what changed along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._operations.overview import Line
from langgraph.checkpoint.dynamodb.cli.history import tree
from tests.cli.conftest import Run
from tests.support.checkpoints import store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


def line(name: str, parent: str | None) -> Line:
    return Line(name, parent, None, tasks=0, waiting=False, failed=False, expires_at=None)


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({"1": None, "2": "1", "3": "2"}, "1 2 3"),
        ({"1": None, "2": "1", "3": "2", "4": "1"}, "1  2  3 4"),
        ({"1": None, "2": "1", "3": "1", "4": "2"}, "1  3 2 4"),
        ({"2": "cut off", "3": "2", "4": None}, " 2  3 4"),
        ({"1": None, "2": "1", "3": "2", "4": "2", "5": "1"}, "1  2   3  4 5"),
    ],
)
def test_forks_are_set_in_and_the_newest_is_not(parents: dict[str, str | None], expected: str) -> None:
    found = [line(name, parent) for name, parent in sorted(parents.items(), reverse=True)]
    shown = " ".join(" " * depth + each.checkpoint_id for depth, each in tree(found))
    assert shown == expected


def test_a_long_thread_is_no_deep_recursion() -> None:
    found = [line(f"{each:05}", f"{each - 1:05}") for each in range(5000, 0, -1)]
    assert [depth for depth, _ in tree(found)] == [0] * 5000


def test_a_fork_and_its_newest_checkpoint_are_shown(run: Run, table: str) -> None:
    ended = run("history", "forked", "--table", table)
    shown = ended.out.splitlines()
    assert len(shown) == 8
    assert [each.startswith("│ ○") for each in shown].count(True) == 2
    assert shown[-1].startswith("● ")
    assert "step 4, update" in shown[-1]
    assert "1 task with writes" in shown[0]
    found = run("history", "forked", "--table", table, "--json").json
    assert [each["metadata"]["source"] for each in found] == ["update", *["loop"] * 6, "input"]
    assert found[0]["parent_id"] == found[3]["checkpoint_id"]
    assert found[0]["stored_at"] > found[1]["stored_at"]


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
    assert run("history", "secret", "--table", table).out == "● 1  encrypted\n"
    assert run("show", "secret", "--table", table).code == 4
    monkeypatch.setenv("THE_KEY", "0123456789abcdef")
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_TYPE", "dynamodb")
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_CONFIG__ENCRYPTION_KEY__ENVIRONMENT", "THE_KEY")
    assert run("history", "secret", "--table", table).out == "● 1  step 1, loop\n"
    assert run("show", "secret", "--table", table, "--json").json["values"] == {"text": "x"}


# What changed


def test_the_newest_step_is_compared_with_the_one_before(run: Run, table: str) -> None:
    ended = run("diff", "chat", "--table", table)
    assert ": ai: The answer to the weather." in ended.out
    assert "tool: line" not in ended.out
    found = run("diff", "chat", "--table", table, "--json").json
    (message,) = [each for each in found["changes"] if (each["path"] or [""])[0] == "messages"]
    assert (message["change"], message["before_path"]) == ("added", None)
    assert message["after"]["content"] == "The answer to the weather."


@pytest.fixture(scope="module")
def changed(make_table: Callable[[], str], open_saver: Callable[..., DynamoDBSaver]) -> str:
    """Give a table with a thread of two checkpoints, between which everything changes in its own way."""
    table = make_table()
    saver = open_saver(table)
    first: dict[str, Any] = {
        "same": 1,
        "gone": "x",
        "list": ["a", "b", "c"],
        "object": {"kept": 1, "changed": 2},
        "moved": ["a", "b"],
        "long": "x" * 900 + "1",
    }
    config = store(saver, thread_config("changed"), "1", first)
    second = {
        "same": 1,
        "new": {"a": 1},
        "list": ["a", "c", "d"],
        "object": {"kept": 1, "changed": 3},
        "moved": ["b", "a"],
        "long": "x" * 900 + "2",
    }
    store(saver, config, "2", second)
    return table


def test_each_kind_of_change_is_shown(run: Run, changed: str) -> None:
    shown = run("diff", "changed", "--table", changed).out
    assert shown.splitlines() == [
        "- gone: x",
        "- list[1]: b",
        "+ list[2]: d",
        f"- long: …{'x' * 50}1",
        f"+ long: …{'x' * 50}2",
        "> moved[1] is at moved[0]",
        "- object.changed: 2",
        "+ object.changed: 3",
        '+ new: {"a": 1}',
    ]
    assert "x" * 900 + "2" in run("diff", "changed", "--table", changed, "--full").out
    found = run("diff", "changed", "--table", changed, "--json").json
    assert (found["from"], found["to"]) == ("1", "2")
    changes = {each["change"]: each for each in found["changes"]}
    assert changes["gone"] == {"change": "gone", "before_path": ["list", 1], "path": None, "before": "b"}
    assert changes["moved"] == {"change": "moved", "before_path": ["moved", 1], "path": ["moved", 0]}


def test_any_two_checkpoints_are_compared(run: Run, changed: str) -> None:
    same = run("diff", "changed", "--table", changed, "--from", "2", "--to", "2")
    assert "no channel changed" in same.err
    first = run("diff", "changed", "--table", changed, "--to", "1")
    assert first.code == 3
    assert "has no parent; give --from" in first.err
