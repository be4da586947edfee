"""`export` and `import`: a thread as a file, and back."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from langgraph.checkpoint.dynamodb.cli.command import DryRun, ThreadId, Yes
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import counted, sized
from langgraph.checkpoint.dynamodb.migrate import (
    Exported,
    FileStore,
    Status,
    TableStore,
    export_thread,
    migrate,
)

PIPE = Path("-")


def export(
    context: CommandContext,
    thread_id: ThreadId,
    file: Annotated[
        Path,
        typer.Argument(metavar="[FILE]", help="The file to write; - is standard output.", show_default=False),
    ] = PIPE,
    *,
    yes: Yes = False,
) -> None:
    """Write a thread to a file of JSON lines.

    The file has all that belongs to the thread; `langgraph-dynamodb docs thread-file` describes its format. It is not
    encrypted, even if the thread is: whoever has the file has the conversation.
    """
    with written_file(context, file, yes=yes) as stream:
        exported = export_thread(TableStore(context.saver), thread_id, stream)
    if file != PIPE:
        _say_what_was_written(context, exported, file)


@contextmanager
def written_file(context: CommandContext, file: Path, *, yes: bool) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete. Ask before one is replaced."""
    if file == PIPE:
        if context.output.as_json:
            raise CommandError(Exit.USAGE, "--json is about what was written; give a file to write to")
        yield sys.stdout.buffer
        return
    if file.exists():
        context.confirm(f"{file} is there already. Replace it?", yes=yes)
    part = file.with_name(f"{file.name}.part")
    try:
        try:
            stream = part.open("wb")
        except OSError as error:
            raise CommandError(Exit.USAGE, f"{part} cannot be written: {error}") from error
        with stream:
            yield stream
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _say_what_was_written(context: CommandContext, exported: Exported, file: Path) -> None:
    if context.output.as_json:
        context.output.json({**vars(exported), "file": str(file)})
        return
    context.output.text(
        f"exported: {counted(exported.checkpoints, 'checkpoint')} with {counted(exported.writes, 'pending write')},"
        f" {sized(exported.bytes)}, to {file}"
    )


def import_(
    context: CommandContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The exported file; - is standard input.")],
    *,
    thread_id: Annotated[
        str | None, typer.Option("--as", metavar="THREAD", help="Another id for the thread.")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Store a thread that was exported, and compare it with the file.

    Under its own id or another. The file is checked to its end before anything is stored. Of a thread that is there
    already, only what is missing is stored; one that has gone on since is left alone. No object that the file names is
    made.
    """
    target = TableStore(context.saver)
    with readable_file(file) as stream:
        found = FileStore(stream, target, thread_id)
        (own_id,) = found.thread_ids()
        count = len(found.refs(own_id))
        if dry_run:
            context.output.text(f"would store: {counted(count, 'checkpoint')} of thread {own_id!r}")
            return
        context.confirm(
            f"Store {counted(count, 'checkpoint')} of thread {own_id!r} in table {context.options.table_name}?",
            yes=yes,
        )
        (report,) = migrate(found, target, [own_id], verify=True, measure=False)
    if report.status is Status.FAILED:
        raise CommandError(Exit.PROBLEMS, "; ".join(report.problems))
    if context.output.as_json:
        context.output.json({
            "thread_id": own_id,
            "status": report.status.value,
            "checkpoints": report.checkpoints,
            "verified": report.verified,
        })  # fmt: skip
        return
    context.output.text(
        f"{own_id}: {report.status.value}, {report.checkpoints:,} of {counted(count, 'checkpoint')} stored"
    )


@contextmanager
def readable_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file that can be read twice. Standard input is copied to a temporary file first."""
    if file == PIPE:
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.seek(0)
            yield spool
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{file} cannot be read: {error}") from error
    with stream:
        yield stream
