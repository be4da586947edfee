"""`migrate`: threads into the table and back, and what it says of it."""

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli import Exit
from langgraph.checkpoint.dynamodb.migrate import migrate
from tests.cli.conftest import OpenSaver, Run, count
from tests.support.checkpoints import Conversation, store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def threads() -> list[str]:
    """Give the ids of three threads."""
    return [f"{uuid.uuid4()}" for _ in range(3)]


@pytest.fixture
def place(tmp_path: Path, threads: list[str]) -> str:
    """Give a database of three threads, of two checkpoints each."""
    path = tmp_path / "threads.db"
    with closing(sqlite3.connect(path)) as connection:
        for thread in threads:
            talk = Conversation(SqliteSaver(connection), thread)
            talk.put(said=["one"])
            talk.saver.put_writes(talk.put(said=["one", "two"]), [("said", "three")], "task")
    return f"sqlite:{path}"


def test_threads_are_moved_and_what_they_took_is_said(
    run: Run, saver: DynamoDBSaver, place: str, threads: list[str]
) -> None:
    ended = run("migrate", "--from", place, "--yes")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "threads: 3 moved"
    assert lines[1] == "checkpoints: 6 with 3 pending writes"
    assert [count(saver, each) for each in threads] == [2] * 3
    again = run("migrate", "--from", place, "--yes", "--json").json
    assert again["threads"] == {"complete": 3}
    assert (again["checkpoints"], again["left"]) == (0, {})


def test_a_move_and_an_import_say_which_threads_have_no_owner(
    run: Run, open_own: OpenSaver, own_table: str, write_config: Callable[..., str], tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "threads.db")) as connection:
        for thread, owner in (("one", {"user_id": "ada"}), ("two", {"user_id": "ada"}), ("nobody's", {})):
            store(SqliteSaver(connection), thread_config(thread), "1", {"a": 1}, **owner)
    configured = ("--config", write_config(own_table, owner_from="user_id"))
    command = ("migrate", "--from", f"sqlite:{tmp_path}/threads.db", *configured)
    for dry, option in ((True, "--dry-run"), (False, "--yes")):
        ended = run(*command, option, "--json")
        assert (ended.json["with_owner"], ended.json["threads_without_owner"]) == (2, ["nobody's"])
        assert ended.code == (0 if dry else Exit.PROBLEMS)
    ended.fails(Exit.PROBLEMS, "no checkpoint of 1 thread names an owner under 'user_id'")
    again = run(*command, "--yes")
    assert again.out.splitlines()[2] == "owners: 2 with owner, 1 without owner"
    assert len(open_own().threads(owner="ada").threads) == 2
    for thread, code in (("one", 0), ("nobody's", Exit.PROBLEMS)):
        run("export", thread, str(tmp_path / "file"), "--yes")
        ended = run("import", str(tmp_path / "file"), "--as", "copy", *configured, "--yes", "--json")
        assert (ended.code, ended.json["owner"]) == (code, None if code else "ada")
        open_own().delete_thread("copy")


def test_nothing_is_moved_unless_somebody_agrees(
    run: Run, shared: str, saver: DynamoDBSaver, place: str, threads: list[str]
) -> None:
    run("migrate", "--from", place).fails(7, f"Move 3 threads into table {shared}?")
    dry = run("migrate", *threads[:2], "--from", place, "--dry-run", "--json")
    assert (dry.json["dry_run"], dry.json["threads"], dry.json["checkpoints"]) == (True, {"moved": 2}, 4)
    assert [count(saver, each) for each in threads] == [0] * 3
    run("migrate", threads[0], "--from", place, "--yes")
    dry = run("migrate", *threads[:2], "--from", place, "--dry-run")
    assert sorted(dry.out.splitlines()[0].removeprefix("threads would be: ").split(", ")) == [
        "1 complete",
        "1 moved",
    ]
    assert dry.out.splitlines()[1] == "checkpoints: 2 with 1 pending write"


def test_and_back_by_a_file_of_ids(run: Run, place: str, threads: list[str], tmp_path: Path) -> None:
    run("migrate", "--from", place, "--yes")
    file = tmp_path / "ids"
    file.write_text("\n".join([*threads[1:], "nobody"]))
    back = f"sqlite:{tmp_path}/back.db"
    ended = run("migrate", "--to", back, "-f", str(file), "--yes")
    assert ended.code == 3
    assert "threads: " in ended.out
    assert "nobody: absent" in ended.out
    assert ended.err.endswith("error: 1 thread not found at the source\n")
    with closing(sqlite3.connect(tmp_path / "back.db")) as connection:
        assert [count(SqliteSaver(connection), each) for each in threads] == [0, 2, 2]


def test_all_threads_of_the_table_are_found_by_a_scan(
    run: Run, make_table: Callable[[], str], open_saver: OpenSaver, tmp_path: Path
) -> None:
    table = make_table()
    Conversation(open_saver(table), "talk").put(said="one")
    ended = run("migrate", "--to", f"sqlite:{tmp_path}/all.db", "--table", table, "--yes")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "threads: 1 moved")
    dry = run("migrate", "--from", f"sqlite:{tmp_path}/all.db", "--table", table, "nobody", "--dry-run")
    assert (dry.code, dry.out.splitlines()[0]) == (3, "threads would be: 1 absent")
    assert dry.err.endswith("error: 1 thread not found at the source\n")
    nothing = run("migrate", "--to", f"sqlite:{tmp_path}/all.db", "--table", make_table(), "--yes")
    assert nothing.out.splitlines()[:2] == ["threads: none", "checkpoints: 0 with 0 pending writes"]


def test_a_thread_that_is_another_conversation_in_the_target_is_left(
    run: Run, saver: DynamoDBSaver, place: str, threads: list[str]
) -> None:
    Conversation(saver, threads[0]).put(said=["another"])
    command = ("migrate", threads[0], "nobody", "--from", place)
    dry, ended = (run(*command, option) for option in ("--dry-run", "--yes"))
    for each in (dry, ended):
        assert each.code == 8
        assert "different conversations by now" in each.out
    assert ended.err.endswith(
        "error: 1 thread not moved to the end; run the same command again to continue\n"
    )


def test_an_option_goes_over_the_environment(
    run: Run, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_MIGRATE_FROM", place)
    back = ("migrate", "nobody", "--to", f"sqlite:{tmp_path}/back.db", "--dry-run", "--json")
    assert run(*back).json["threads"] == {"absent": 1}
    assert run("migrate", "--dry-run").code == 0
    monkeypatch.setenv("LANGGRAPH_MIGRATE_FROM", "")
    assert run("migrate", "--dry-run").code == 2
    monkeypatch.setenv("LANGGRAPH_MIGRATE_TO", place)
    monkeypatch.setenv("LANGGRAPH_MIGRATE_FROM", place)
    assert "give either --from or --to" in run("migrate", "--dry-run").err


def test_who_interrupts_it_is_told_how_far_it_came(
    run: Run, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupted(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield next(migrate(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr("langgraph.checkpoint.dynamodb.cli.transfer.migrate_threads", interrupted)
    run("migrate", "--from", place, "--yes").fails(
        130, "moved before this ended: 2 checkpoints", "interrupted"
    )
