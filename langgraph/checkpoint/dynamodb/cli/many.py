"""Many threads at a time: choosing them, and serving them in parallel."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import typer

from .._operations.error_collector import OF_ONE_THREAD
from .._operations.overview import ScannedPage, is_stored, scan_threads
from ..errors import CheckpointerInputError, CheckpointNotFoundError
from . import CommandError, Exit
from .context import CommandContext
from .output import counted, total

T = TypeVar("T")

NO_SUCH_THREAD = "the table has no such thread"

# Errors that concern one thread alone. Any other error would fail all threads.
_OF_ONE = (*OF_ONE_THREAD, CheckpointerInputError)

ThreadIds: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="THREAD", help="The threads.", show_default=False)
]
From: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--from-file",
        "-f",
        metavar="FILE",
        help="A file with thread ids, one on each line; - is standard input.",
    ),
]
AllThreads: TypeAlias = Annotated[
    bool, typer.Option("--all", help="Every thread of the table, found by a scan.")
]


@dataclass
class Served(Generic[T]):
    """The outcome for many threads."""

    done: dict[str, T] = field(default_factory=dict)
    """The threads that were served, with the result of each."""
    absent: dict[str, str] = field(default_factory=dict)
    """The threads that the table does not have, with the error of each."""
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, thread_id: str, one: Callable[[str], T]) -> None:
        """Serve a thread."""
        try:
            self.done[thread_id] = one(thread_id)
        except CheckpointNotFoundError as error:
            self.absent[thread_id] = str(error)
        except _OF_ONE as error:
            self.failed[thread_id] = str(error)

    @property
    def left(self) -> dict[str, str]:
        """The threads that were not served, with the reason for each."""
        return {**self.absent, **self.failed}


def chosen(
    context: CommandContext, thread_ids: Sequence[str] | None, file: Path | None, *, scan: bool = False
) -> list[str]:
    """Return the threads that a command is for, each of them once.

    Raises:
        CommandError: No thread is named, or the file cannot be read.
    """
    given = list(thread_ids or ())
    if not given and file is None and not scan:
        raise CommandError(Exit.USAGE, "no thread is named; give ids, or --from-file with one a line")
    if file is not None:
        given += _lines(file)
    if scan:
        given += (thread_id for page in scanned(context) for thread_id in page.thread_ids)
    return list(dict.fromkeys(given))


def scanned(context: CommandContext, *, with_bytes: bool = False) -> Iterator[ScannedPage]:
    """Scan the table for threads, after announcing what that reads and costs."""
    with context.output.progress("scanning items", context.announce_scan()) as advance:
        for page in context.stream(scan_threads(context.storage, with_bytes=with_bytes)):
            yield page
            advance(page.scanned_items)


def check_all_or_named(thread_ids: Sequence[str] | None, file: Path | None, *, all_threads: bool) -> None:
    """Raise if threads are named beside `--all`.

    Raises:
        CommandError: They are.
    """
    if all_threads and (thread_ids or file is not None):
        raise CommandError(Exit.USAGE, "give threads, or --all, not both")


def _lines(file: Path) -> list[str]:
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(Exit.USAGE, f"{file} cannot be read: {error}") from error
    # Other line separators may be parts of an id.
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def serve(
    context: CommandContext,
    what: str,
    thread_ids: Sequence[str],
    one: Callable[[str], T],
    *,
    must_exist: bool = False,
) -> Served[T]:
    """Call a function for each of some threads. A thread that fails does not stop the others.

    Ctrl-C, or an error that does not concern one thread alone, starts no more threads, waits for those that are under
    way, and reports how many were served.

    Args:
        context: The command's context.
        what: What is done, for the progress bar.
        thread_ids: The threads.
        one: Serves a thread, and returns the result.
        must_exist: Whether a thread that the table does not have is told, and not served.
    """
    served = Served[T]()

    def checked(thread_id: str) -> T:
        if must_exist and not context.run(is_stored(context.storage, thread_id)):
            raise CheckpointNotFoundError(NO_SUCH_THREAD)
        return one(thread_id)

    with ThreadPoolExecutor(context.parallel) as pool:
        try:
            waiting = [pool.submit(served.add, thread_id, checked) for thread_id in thread_ids]
            for future in context.output.track(what, as_completed(waiting), len(waiting)):
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            total = counted(len(thread_ids), "thread")
            context.output.note(f"{what}: {len(served.done):,} of {total} served before this ended")
            raise
    return served


def conclude(
    context: CommandContext,
    verb: str,
    served: Served[Any],
    totals: Mapping[str, int] | None = None,
    report: Mapping[str, Any] | None = None,
) -> None:
    """Report the outcome for all threads, with totals if they were measured, and with what else there is to say.

    Raises:
        CommandError: Some threads could not be served, or do not exist.
    """
    sums = totals or {}
    if context.output.as_json:
        outcome = {
            verb.replace(" ", "_"): list(served.done),
            "absent": list(served.absent),
            "failed": served.failed,
        }
        context.output.json({**outcome, **sums, **(report or {})})
    else:
        measured = "".join(f", {total(name, value)}" for name, value in sums.items())
        context.output.text(f"{verb}: {counted(len(served.done), 'thread')}{measured}")
        for thread_id, error in served.left.items():
            context.output.field(thread_id, error)
        for name, value in (report or {}).items():
            shown = value if isinstance(value, str) else "\n".join(value)
            context.output.field(name.replace("_", " "), shown or "none")
    check_all_served(served)


def check_owned(ownerless: int, owner_from: str | None) -> None:
    """End the command with an error if threads have no owner though one is looked for.

    Raises:
        CommandError: Some have none.
    """
    if ownerless and owner_from is not None:
        msg = (
            f"no checkpoint of {counted(ownerless, 'thread')} names an owner under {owner_from!r} in metadata that the"
            " configured key opens; run `langgraph-dynamodb directory` with another --owner-from, or name owners with"
            " set_thread(owner=...)"
        )
        raise CommandError(Exit.PROBLEMS, msg)


def check_all_served(served: Served[Any]) -> None:
    """End the command with an error if a thread was not served.

    Raises:
        CommandError: Some threads could not be served, or do not exist.
    """
    if served.failed:
        failed = counted(len(served.failed), "thread")
        msg = f"{failed} could not be served; run the same command again to retry"
        raise CommandError(Exit.PROBLEMS, msg)
    if served.absent:
        msg = f"{counted(len(served.absent), 'thread')} not found; `threads` lists them"
        raise CommandError(Exit.NOT_FOUND, msg)
