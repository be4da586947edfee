"""Many threads at a time: which ones, side by side, and what was done already when a command is run again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO, TypeAlias

import typer

from langgraph.checkpoint.dynamodb._operations.survey import is_stored
from langgraph.checkpoint.dynamodb.cli.desk import Desk
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.threads import all_threads
from langgraph.checkpoint.dynamodb.cli.values import counted
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointerError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    ThreadBusyError,
)

NO_SUCH_THREAD = "the table has no such thread"

# What concerns one thread alone; whatever else fails would fail for all.
_OF_ONE = (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    ThreadBusyError,
)

ThreadIds: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="THREAD", help="The threads.", show_default=False)
]
From: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--from-file", "-f", metavar="FILE", help="Threads by a file, one id a line; - is standard input."
    ),
]
AllThreads: TypeAlias = Annotated[
    bool, typer.Option("--all", help="Every thread of the table, found by a scan.")
]
Parallel: TypeAlias = Annotated[
    int, typer.Option(min=1, max=64, metavar="N", help="How many threads are served side by side.")
]
Done: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--done",
        metavar="FILE",
        help="Where what was served is noted; with the same file, the command goes on where it was interrupted.",
    ),
]


@dataclass
class Served:
    """What became of many threads."""

    done: list[str] = field(default_factory=list)
    skipped: int = 0
    """Those that an earlier run had served."""
    absent: dict[str, str] = field(default_factory=dict)
    """Those that the table does not have."""
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def left(self) -> dict[str, str]:
        """Why each thread was not served."""
        return {**self.absent, **self.failed}


def chosen(
    desk: Desk, thread_ids: Sequence[str] | None, file: Path | None, *, scan: bool = False
) -> list[str]:
    """The threads that a command is for, each of them once.

    Raises:
        CommandError: None is named, or the file cannot be read.
    """
    given = list(thread_ids or ())
    if not given and file is None and not scan:
        msg = "no thread is named; give ids, or --from-file with one a line"
        raise CommandError(Exit.USAGE, msg)
    if file is not None:
        given += _lines(file)
    if scan:
        given += all_threads(desk)
    return list(dict.fromkeys(given))


def check_exists(desk: Desk, thread_id: str) -> None:
    """Refuse a thread that the table does not have.

    Raises:
        CheckpointNotFoundError: It has nothing of the thread.
    """
    if not desk.run(is_stored(desk.table, thread_id)):
        raise CheckpointNotFoundError(NO_SUCH_THREAD)


def _lines(file: Path) -> list[str]:
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(Exit.USAGE, f"{file} cannot be read: {error}") from error
    # Other separators may be parts of an id.
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def serve(
    desk: Desk,
    what: str,
    thread_ids: Sequence[str],
    one: Callable[[str], object],
    *,
    parallel: int,
    done: Path | None = None,
) -> Served:
    """Do something for each of some threads; one that cannot be served does not keep the others from it.

    Ctrl-C begins no more, waits for those that are under way, and says how far it came.
    """
    if done is not None and any(set("\r\n") & set(each) for each in thread_ids):
        msg = "a thread id has a line break in it, which --done cannot note; serve that thread by itself"
        raise CommandError(Exit.USAGE, msg)
    earlier = set(_lines(done)) if done is not None and done.exists() else set()
    left = [each for each in thread_ids if each not in earlier]
    served = Served(skipped=len(thread_ids) - len(left))
    with ExitStack() as stack:
        bar = stack.enter_context(desk.output.progress(what, len(left)))
        notes = None if done is None else stack.enter_context(done.open("a", encoding="utf-8"))
        pool = stack.enter_context(ThreadPoolExecutor(parallel))
        try:
            for thread_id, error in _side_by_side(pool, left, one, parallel):
                bar.advance()
                _note(served, notes, thread_id, error)
        except BaseException:
            _say(desk, what, served, len(left))
            raise
    return served


def _side_by_side(
    pool: ThreadPoolExecutor, thread_ids: Iterable[str], one: Callable[[str], object], parallel: int
) -> Iterator[tuple[str, CheckpointerError | None]]:
    """Serve so many at a time, and give each with its error as it ends; none is begun after another kind of error."""
    waiting = iter(thread_ids)
    running: dict[Future[object], str] = {}
    try:
        while True:
            for each in islice(waiting, parallel - len(running)):
                running[pool.submit(one, each)] = each
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                thread_id, error = running.pop(future), future.exception()
                if error is not None and not isinstance(error, _OF_ONE):
                    raise error
                yield thread_id, error
    except (Exception, KeyboardInterrupt):
        wait(running)
        for future, thread_id in running.items():
            if future.exception() is None:
                yield thread_id, None
        raise


def _note(served: Served, notes: TextIO | None, thread_id: str, error: Exception | None) -> None:
    if error is not None:
        left = served.absent if isinstance(error, CheckpointNotFoundError) else served.failed
        left[thread_id] = str(error)
        return
    served.done.append(thread_id)
    if notes is not None:
        # At once: whoever ends this process is to find it noted.
        notes.write(f"{thread_id}\n")
        notes.flush()


def _say(desk: Desk, what: str, served: Served, total: int) -> None:
    desk.output.note(f"{what}: {len(served.done):,} of {counted(total, 'thread')} served before this ended")


def conclude(desk: Desk, verb: str, served: Served, totals: Mapping[str, int] | None = None) -> None:
    """Say what became of all threads, and what it came to where that was measured.

    Raises:
        CommandError: Some could not be served, or do not exist.
    """
    sums = totals or {}
    if desk.output.as_json:
        key = verb.replace(" ", "_")
        desk.output.json(
            {
                key: served.done,
                "skipped": served.skipped,
                "absent": list(served.absent),
                "failed": served.failed,
                **sums,
            }
        )
    else:
        earlier = f", {served.skipped:,} earlier" if served.skipped else ""
        measured = "".join(f", {value:,} {name.replace('_', ' ')}" for name, value in sums.items())
        desk.output.text(f"{verb}: {counted(len(served.done), 'thread')}{earlier}{measured}")
        for thread_id, error in served.left.items():
            desk.output.field(thread_id, error)
    check_all_served(served)


def check_all_served(served: Served) -> None:
    """End the command with an error where a thread was not served.

    Raises:
        CommandError: Some could not be served, or do not exist.
    """
    if served.failed:
        failed = counted(len(served.failed), "thread")
        msg = f"{failed} could not be served; the same command tries them again"
        raise CommandError(Exit.PROBLEMS, msg)
    if served.absent:
        msg = f"{counted(len(served.absent), 'thread')} not found; `threads` lists those that there are"
        raise CommandError(Exit.NOT_FOUND, msg)
