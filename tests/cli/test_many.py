"""`prune`, `delete`: for many threads, asked about, tried dry and interrupted; and `copy`."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from langgraph.checkpoint.base.id import uuid6

from benchmarks.meter import Meter
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import moments
from langgraph.checkpoint.dynamodb._format.items import partition_of
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb._operations.thread_item import read_thread
from langgraph.checkpoint.dynamodb.cli import Exit, many, output
from langgraph.checkpoint.dynamodb.cli.output import Output
from tests.cli.conftest import OpenSaver, Run, count, encrypting
from tests.support.checkpoints import Conversation, all_items, noise, store, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def threads(saver: DynamoDBSaver) -> list[str]:
    """Give six threads of three checkpoints."""
    names = [f"{uuid.uuid4()} {number}" for number in range(6)]
    for name in names:
        conversation = Conversation(saver, name)
        for text in ("one", "two", "three"):
            conversation.put(text=text)
    return names


# Asking, and trying dry


@pytest.mark.parametrize("command", ["delete", "prune"])
def test_nothing_is_changed_unless_somebody_agrees(
    run: Run, saver: DynamoDBSaver, threads: list[str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(command, *threads).fails(7, "6 threads", "give --yes")
    monkeypatch.setattr(Output, "is_watched", True)
    monkeypatch.setattr(Output, "ask", lambda *_: False)
    assert run(command, *threads).code == 7
    assert [count(saver, each) for each in threads] == [3] * 6


def test_a_dry_run_says_what_would_be_changed_and_changes_nothing(
    run: Run, shared: str, threads: list[str], client: DynamoDBClient
) -> None:
    before = all_items(client, shared)
    deleted = run("delete", *threads, "--dry-run", "--json").json
    assert sorted(deleted["would_delete"]) == sorted(threads)
    assert run("prune", *threads, "--dry-run", "--json").json["checkpoints"] == 12
    copied = run("copy", threads[0], "copy", "--dry-run")
    assert copied.out.startswith(f"would copy: thread {threads[0]!r} of table {shared} to thread 'copy' of")
    assert all_items(client, shared) == before


# Deleting


def test_threads_are_deleted_by_a_file_side_by_side(
    run: Run, saver: DynamoDBSaver, threads: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "threads"
    file.write_bytes("\r\n".join(["\ufeff" + threads[0], *threads[1:4], "", "not\rthere"]).encode())
    ended = run("delete", "-f", str(file), "--yes")
    assert (ended.code, ended.out) == (
        3,
        "deleted: 4 threads\nnot\\u000dthere: the table has no such thread\n",
    )
    assert [count(saver, each) for each in threads] == [0, 0, 0, 0, 3, 3]


def test_threads_are_read_from_standard_input(run: Run, saver: DynamoDBSaver, threads: list[str]) -> None:
    ended = run("delete", "--from-file", "-", "--yes", "--json", stdin="\n".join(threads))
    assert sorted(ended.json["deleted"]) == sorted(threads)
    assert [count(saver, each) for each in threads] == [0] * 6


@pytest.mark.parametrize("end", [KeyboardInterrupt(), ConnectionAbortedError("no network")])
def test_an_interruption_waits_for_what_is_under_way(
    run: Run,
    saver: DynamoDBSaver,
    threads: list[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    end: BaseException,
) -> None:
    real = DynamoDBSaver.delete_thread
    under_way, cancelled = threading.Event(), threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            cancelled.set()
            super().shutdown(wait)

    def delete(saver: DynamoDBSaver, thread_id: str) -> None:
        if thread_id == threads[2]:
            under_way.wait()
            if isinstance(end, ConnectionError):
                raise end
            # Ctrl-C reaches the main thread, which waits.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            cancelled.wait()
        if thread_id in threads[3:]:
            under_way.set()
            cancelled.wait()
            if isinstance(end, ConnectionError):
                raise end
        real(saver, thread_id)

    monkeypatch.setattr(DynamoDBSaver, "delete_thread", delete)
    monkeypatch.setattr(many, "ThreadPoolExecutor", Pool)
    # A shell that starts the tests in the background lets them ignore it.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, handler))
    arguments = ("delete", *threads, "--yes", "--parallel", "2")
    if isinstance(end, KeyboardInterrupt):
        run(*arguments).fails(130, "of 6 threads served before this ended", "interrupted")
    else:
        with pytest.raises(ConnectionAbortedError):
            run(*arguments)
    left = [3, 3] if isinstance(end, ConnectionError) else [0, 0]
    assert [count(saver, each) for each in threads] == [0, 0, *left, 3, 3]
    monkeypatch.setattr(DynamoDBSaver, "delete_thread", real)
    # Those that an earlier run deleted are told.
    assert run(*arguments).code == 3
    assert [count(saver, each) for each in threads] == [0] * 6


def test_one_that_cannot_be_served_does_not_keep_the_others_from_it(
    run: Run, saver: DynamoDBSaver, threads: list[str]
) -> None:
    too_long = "x" * 3000
    ended = run("delete", threads[0], too_long, threads[1], "--yes", "--parallel", "1")
    assert ended.code == 8
    assert "deleted: 2 threads" in ended.out
    assert f"{too_long}: thread_id with checkpoint_ns makes a key" in ended.out
    assert "1 thread could not be served" in ended.err
    assert [count(saver, each) for each in threads[:2]] == [0, 0]
    # One that is absent beside it is no reason for another code; one that is named twice is served once.
    some = ("absent", too_long, threads[2], threads[2])
    ended = run("delete", *some, "--yes", "--json", "--parallel", "1")
    assert (ended.code, ended.json["deleted"], ended.json["absent"]) == (8, [threads[2]], ["absent"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("delete",), "no thread is named"),
        (("delete", "-f", "not-there"), "cannot be read"),
        (("copy", "one", "two", "--from", "no table"), "cannot be the name of a table"),
        (("prune", "one", "--older-than", "1y"), "such as 30d"),
        (("prune", "one", "--all"), "give threads, or --all, not both"),
        (("prune", "--from-file", "-", "--all"), "give threads, or --all, not both"),
        (("verify", "one", "--all"), "give threads, or --all, not both"),
        (("verify", "--from-file", "-", "--all"), "give threads, or --all, not both"),
        (("threads", "--without-owner", "--owner", "ada"), "give --without-owner, or --owner and --since"),
        (("threads", "--without-owner", "--since", "7d"), "give --without-owner, or --owner and --since"),
        (("delete", "--owner", "ada", "--memories", "users"), "has no label 'ada'"),
        (("delete", "--owner", "ada", "--memories", "users//ada"), "cannot be used"),
        (("delete", "one", "--memories", "users/ada"), "--memories needs --owner"),
        (("delete", "one", "--owner", "ada"), "give threads, or --owner, not both"),
        (("directory", "one", "--owner-from", ""), "give a key of the metadata, such as user_id"),
        (("show", "one", "--checkpoint", ""), "the id of a checkpoint is empty"),
        (("migrate",), "give either --from or --to"),
        (("migrate", "--from", "sqlite:a", "--to", "sqlite:b"), "give either --from or --to"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Run, arguments: tuple[str, ...], says: str) -> None:
    assert run(*arguments).fails(Exit.USAGE, says).out == ""


# Threads that are not there


@pytest.mark.parametrize(
    "arguments",
    [
        ("copy", "{}", "copy"),
        ("copy", "{}", "copy", "--dry-run"),
        ("delete", "{}"),
        ("directory", "{}"),
        ("delete", "{}", "--dry-run"),
        ("prune", "{}"),
        ("prune", "{}", "--dry-run"),
        ("verify", "{}"),
        ("history", "{}"),
        ("show", "{}"),
        ("export", "{}"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["never stored", "deleted"])
def test_a_thread_that_is_not_there_is_told_by_the_exit_code(
    run: Run, saver: DynamoDBSaver, thread: str, arguments: tuple[str, ...], kind: str
) -> None:
    if kind == "deleted":
        # The thread's epoch outlives it.
        saver.delete_thread(thread)
    name = thread if kind == "deleted" else f"{uuid.uuid4()}"
    can_agree = arguments[0] in ("copy", "delete", "directory", "prune")
    filled = [each.format(name) for each in arguments]
    run(*filled, *(["--yes"] if can_agree else [])).fails(3, "error: ")


@pytest.mark.parametrize("command", ["delete", "prune", "verify"])
def test_a_thread_that_is_not_there_keeps_no_other_from_being_served(
    run: Run, thread: str, command: str
) -> None:
    arguments = [command, thread, "not there"]
    agreed = ["--yes"] if command in ("delete", "prune") else []
    ended = run(*arguments, *agreed).fails(3, "1 thread not found; `threads` lists them")
    assert "not there" in ended.out + ended.err
    if command != "delete":
        assert run(*arguments, *agreed, "--json").json["absent"] == ["not there"]


# Copying


def test_a_copy_says_what_its_target_has(
    run: Run, shared: str, saver: DynamoDBSaver, open_saver: OpenSaver, threads: list[str]
) -> None:
    command = ("copy", *threads[:2])
    beside = f"to thread {threads[1]!r} of table {shared}, beside what it has"
    run(*command).fails(Exit.NOT_CONFIRMED, beside)
    assert run(*command, "--dry-run").out.endswith(f"{beside}\n")
    assert run(*command, "--dry-run", "--json").json["present"] is True
    ended = run(*command, "--yes")
    assert ended.out.endswith(f"{beside}\n")
    assert "ttl_seconds" not in ended.err
    assert count(saver, threads[1]) == 6
    expiring = f"{threads[1]} expires"
    Conversation(open_saver(shared, ttl_seconds=1000), expiring).put(text="one")
    said = run("copy", threads[0], expiring, "--dry-run").err
    assert "The thread has ttl_seconds=None, and the copy has 1000." in said


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["for real", "dry"])
def test_a_thread_is_not_copied_to_itself(
    run: Run, shared: str, threads: list[str], client: DynamoDBClient, dry: tuple[str, ...]
) -> None:
    """Not by the ARN of the table either: it would store every segment again, under names that nothing needs."""
    before = all_items(client, shared)
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{shared}"
    both = f"source and target are both thread {threads[0]!r}"
    for options, says in (((), both), (("--from", shared), both), (("--from", arn), "tables by their ARNs")):
        run("copy", threads[0], threads[0], "--yes", *options, *dry).fails(Exit.USAGE, says)
    assert all_items(client, shared) == before


def test_a_thread_is_copied_from_a_restored_table(
    run: Run,
    own_table: str,
    make_table: Callable[[], str],
    open_own: OpenSaver,
    client: DynamoDBClient,
    configure: Callable[..., None],
) -> None:
    """It keeps its id, its owner and its title; and what is encrypted stays so, for the name of the table in use."""
    restored, saver = make_table(), open_own(ttl_seconds=1000, **encrypting())
    Conversation(saver, "talk").put(text="as it was")
    saver.set_thread("talk", owner="ada", title="Trains")
    for item in all_items(client, own_table):
        client.put_item(TableName=restored, Item=item)
    saver.delete_thread("talk")
    configure(ttl_seconds="60")
    ended = run("copy", "talk", "talk", "--from", restored, "--yes", "--json")
    assert (ended.code, ended.json["copied"]) == (0, True)
    assert stored_values(saver, thread_config("talk")) == {"text": "as it was"}
    [found] = saver.threads(owner="ada").threads
    assert (found.thread_id, found.title) == ("talk", "Trains")
    # The copy has the ttl of the configuration.
    assert "The thread has ttl_seconds=1000, and the copy has 60." in ended.err
    thread: Any = saver.runner.run(read_thread(saver.storage, partition_of("talk")))
    assert thread.life.ttl_seconds == 60


# Pruning


def test_the_newest_are_kept(run: Run, saver: DynamoDBSaver, threads: list[str]) -> None:
    assert run("prune", threads[0], "--yes").out == "pruned: 1 thread\n"
    assert run("prune", threads[1], "--yes", "--keep-last", "2").code == 0
    assert [count(saver, each) for each in threads[:3]] == [1, 2, 3]


@pytest.mark.parametrize("keep", [1, 20])
def test_a_dry_run_says_about_what_a_prune_costs(
    run: Run, saver: DynamoDBSaver, engine: Engine, keep: int
) -> None:
    thread, said = f"cost-{keep}", list[str]()
    talk, within = Conversation(saver, thread), Conversation(saver, thread, "child")
    for number in range(40):
        said.append(f"{number} " + noise(1_500).hex())
        talk.put(messages=list(said))
        within.put(count=number)
    dry = run("prune", thread, "--keep-last", str(keep), "--dry-run", "--json").json
    meter = Meter()
    session = meter.watch(boto3.session.Session())
    with DynamoDBSaver(
        saver.storage.table.name, session=session, endpoint_url=engine.endpoint_url
    ) as metered:
        metered.prune([thread], strategy="keep_last", keep_last=keep)
    assert dry["write_units"] == pytest.approx(meter.total.write_units, rel=0.05)
    assert dry["read_units"] == pytest.approx(meter.total.read_units, rel=0.1)


def test_only_what_is_older_goes(run: Run, open_own: OpenSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    saver = open_own()
    for thread in ("a", "b"):
        where: Any = thread_config(thread)
        for number, name in enumerate(("0 by hand", str(uuid6()), str(uuid6()), str(uuid6()))):
            where = store(saver, where, name, {"number": number})
    by_uuid: Any = saver.get_tuple(thread_config("a"))
    assert run("prune", "--all", "--yes", "--older-than", "1h").code == 0
    assert [count(saver, each) for each in ("a", "b")] == [4, 4]
    # In two hours.
    real = stored_at
    monkeypatch.setattr(
        moments, "stored_at", lambda each: (found := real(each)) and found - output.parse_age("2h")
    )
    dry = run("prune", "--all", "--older-than", "1h", "--dry-run")
    assert "would prune: 2 threads, 4 checkpoints" in dry.out
    ended = run("prune", "--all", "--older-than", "1h")
    assert "keep of those older than 1:00:00 the newest checkpoint of each namespace?" in ended.err
    assert run("prune", "--all", "--yes", "--older-than", "1h").code == 0
    kept = [each.config["configurable"]["checkpoint_id"] for each in saver.list(thread_config("a"))]
    assert kept == [by_uuid.checkpoint["id"], "0 by hand"]
