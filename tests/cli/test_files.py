"""`export` and `import`: files that are whole or not there, and threads that are what they were."""

import json
import os
import uuid
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli import person
from langgraph.checkpoint.dynamodb.cli.output import Output
from langgraph.checkpoint.dynamodb.migrate.file import Exported
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.cli.conftest import OpenSaver, Run
from tests.support.checkpoints import Conversation, store, stored_values, thread_config
from tests.support.objects import PlantingSerializer

pytestmark = pytest.mark.engines("dynamodb-local")


def test_a_thread_goes_through_a_file(run: Run, saver: DynamoDBSaver, thread: str, tmp_path: Path) -> None:
    file = tmp_path / "thread.jsonl"
    ended = run("export", thread, str(file))
    assert ended.code == 0
    assert ended.out.startswith("exported: 2 checkpoints with 0 pending writes, ")
    assert [each.name for each in tmp_path.iterdir()] == ["thread.jsonl"]
    assert json.loads(file.read_text().splitlines()[0])["thread_id"] == thread
    copy = f"{uuid.uuid4()}"
    ended = run("import", str(file), "--as", copy, "--yes")
    assert (ended.code, ended.out) == (0, f"{copy}: moved, 2 of 2 checkpoints stored\n")
    assert stored_values(saver, thread_config(copy)) == {"said": ["one", "two"]}
    again = run("import", str(file), "--yes", "--json").json
    assert again == {
        "thread_id": thread,
        "status": "complete",
        "checkpoints": 0,
        "owner": None,
        "dry_run": False,
    }


def test_a_thread_goes_through_a_pipe(run: Run, saver: DynamoDBSaver, thread: str) -> None:
    written = run("export", thread)
    assert written.err == ""
    copy = f"{uuid.uuid4()}"
    assert run("import", "-", "--as", copy, "--yes", stdin=written.out).code == 0
    assert stored_values(saver, thread_config(copy)) == {"said": ["one", "two"]}


def test_no_command_runs_what_was_planted_in_a_thread(run: Run, open_own: OpenSaver, tmp_path: Path) -> None:
    ran, file = tmp_path / "ran", tmp_path / "thread.jsonl"
    planting = open_own(serde=PlantingSerializer(ran))
    planting.put_writes(store(planting, thread_config("planted"), "1", {"value": 1}), [("value", 2)], "task")
    for command in (
        ("show", "planted"),
        ("history", "planted"),
        ("verify", "planted"),
        ("export", "planted", str(file)),
        ("import", str(file), "--as", "imported", "--yes"),
        ("copy", "planted", "copied", "--yes"),
        ("migrate", "planted", "--to", f"sqlite:{tmp_path / 'threads.db'}", "--yes"),
    ):
        assert run(*command).code == 0
    viewer = Responses(Session(open_own()), "planted")
    for document in ("state", "pending", "changes"):
        place = {"thread": "planted", "ns": "", "checkpoint": "1"}
        assert "os.system" in str(viewer.document(document, place))
    assert not ran.exists()
    # A saver of LangGraph's default would have.
    open_own().get_tuple(thread_config("imported"))
    assert ran.exists()


def test_nothing_is_stored_or_replaced_unless_somebody_agrees(
    run: Run, saver: DynamoDBSaver, thread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "thread.jsonl"
    assert run("export", thread, str(file), "--json").json["checkpoints"] == 2
    before = file.read_bytes()
    refused = run("export", thread, str(file))
    assert refused.code == 7
    assert refused.err.endswith("is there already. Replace it? Nobody can answer here; give --yes to agree\n")
    assert run("export", thread, str(file), "--yes").code == 0
    assert file.read_bytes() == before
    run("import", str(file), "--as", "another").fails(7, "Store 2 checkpoints of thread 'another'")
    dry = run("import", str(file), "--as", "another", "--dry-run")
    assert dry.out == "another: would be moved, 2 of 2 checkpoints stored\n"
    monkeypatch.setattr(Output, "is_watched", True)
    monkeypatch.setattr(Output, "ask", lambda *_: True)
    assert saver.get_tuple(thread_config("another")) is None
    assert run("import", str(file), "--as", "another").code == 0


def test_a_link_stays_a_link(run: Run, thread: str, tmp_path: Path) -> None:
    file, link = (tmp_path / each for each in ("file", "link"))
    link.symlink_to(file)
    assert run("export", thread, str(link)).code == 0
    assert (link.is_symlink(), file.is_file()) == (True, True)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("mode", [0o600, 0o640, None])
def test_a_file_can_be_read_by_no_more_people_than_before(
    run: Run, thread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int | None
) -> None:
    """While it is being written, nobody but its owner reads it; and it is not written through a planted link."""
    file, elsewhere = tmp_path / "thread.jsonl", tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    file.with_name("thread.jsonl.part").symlink_to(elsewhere)
    if mode is not None:
        file.write_text("old")
        file.chmod(mode)
    while_written = list[int]()

    def exported(_: object, thread_id: str, stream: BinaryIO) -> Exported:
        while_written.append(os.fstat(stream.fileno()).st_mode & 0o777)
        return Exported(thread_id, 1, 0, stream.write(b"new"))

    monkeypatch.setattr(person, "export_thread", exported)
    assert run("export", thread, str(file), "--yes").code == 0
    assert (file.read_text(), elsewhere.read_text()) == ("new", "mine")
    assert (while_written, file.stat().st_mode & 0o777) == ([0o600], mode or 0o600)


def test_a_thread_that_went_another_way_is_not_mixed_with_the_file(
    run: Run, saver: DynamoDBSaver, thread: str, tmp_path: Path
) -> None:
    file = tmp_path / "thread.jsonl"
    run("export", thread, str(file))
    saver.delete_thread(thread)
    Conversation(saver, thread).put(said=["another"])
    for option in ("--dry-run", "--yes"):
        run("import", str(file), option).fails(8, "different conversations by now")


def test_what_cannot_be_read_or_written_is_said(run: Run, thread: str, tmp_path: Path) -> None:
    assert run("export", "nobody", str(tmp_path / "file")).code == 3
    assert list(tmp_path.iterdir()) == []
    assert run("export", thread, str(tmp_path / "none" / "file")).code == 2
    folder = run("export", thread, str(tmp_path), "--yes")
    says = f"error: {tmp_path} is not a file; give a file to write to, or - for standard output\n"
    assert (folder.code, folder.err) == (2, says)
    assert run("export", thread, "--json").code == 2
    assert run("import", str(tmp_path / "none")).code == 2
    cut = tmp_path / "cut"
    cut.write_text('{"format": "langgraph-thread", "version": 1, "thread_id": "1"}\n')
    run("import", str(cut), "--yes").fails(5, "cut short")
    end = {"end": blake2b(cut.read_bytes(), digest_size=32).hexdigest()}
    cut.write_text(f"{cut.read_text()}{json.dumps(end)}\n")
    empty = run("import", str(cut), "--yes")
    says = f"error: {cut} has no checkpoint of thread '1'; export the thread again\n"
    assert (empty.code, empty.err) == (3, says)


def test_a_thread_is_exported_as_a_page(run: Run, thread: str, tmp_path: Path) -> None:
    file = tmp_path / "thread.html"
    ended = run("export", thread, "--html", str(file))
    assert ended.out.startswith("exported: ")
    assert "open it in a browser" in ended.out
    assert f'"thread":"{thread}"' in file.read_text(encoding="utf-8")
    run("export", thread, "--html", str(file)).fails(7, "is there already. Replace it?")
    masked = run("export", thread, "--html", "-", "--mask").out
    assert '"kind":"masked"' in masked
    for wrong in (("--mask",), ("--channels", "text"), ("--html", str(file), "--mask", "--channels", "text")):
        assert run("export", thread, *wrong, "--yes").code == 2
    assert run("export", "nobody", "--html", "-").code == 3
    run("export", thread, "--html", "-", "--channels", "txt").fails(2, "no checkpoint has a channel 'txt'")
