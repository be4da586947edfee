"""Files of JSON lines, whole or not there at all, and `import`, which stores a thread of one. A file may be a pipe."""

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import typer

from ..migrate import FileEndpoint, Status, TableEndpoint, migrate
from . import CommandError, Exit, many
from .context import CommandContext
from .output import counted

PIPE = Path("-")
Written: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="[FILE]", help="The file to write; - is standard output.", show_default=False),
]


def import_(context: CommandContext, file: Path, *, as_: str | None = None) -> None:
    """Store a thread that was exported, and compare it with the file.

    The thread keeps its id, unless you give another one. The command checks the whole file before it stores anything.
    If the thread exists already, it stores only what is missing. If the thread has continued since, it changes nothing.
    It creates no object that the file names.

    Options:
        file FILE: The exported file; - is standard input.
        as_ THREAD: Another id for the thread.
    """
    target = TableEndpoint(context.saver)
    with readable_file(file) as stream:
        found = FileEndpoint(stream, target, as_)
        (own_id,) = found.thread_ids()
        count = len(found.refs(own_id))
        if not count:
            msg = f"{file} has no checkpoint of thread {own_id!r}; export the thread again"
            raise CommandError(Exit.NOT_FOUND, msg)
        what = f"{counted(count, 'checkpoint')} of thread {own_id!r} in table {context.options.table_name}"
        context.confirm(f"Store {what}?")
        (report,) = migrate(found, target, [own_id], dry_run=context.dry_run)
    if report.status is Status.FAILED:
        raise CommandError(Exit.PROBLEMS, "; ".join(report.problems))
    document = {
        "thread_id": own_id,
        "status": report.status.value,
        "checkpoints": report.checkpoints,
        "owner": report.owner,
        "dry_run": context.dry_run,
    }
    status = f"would be {report.status.value}" if context.dry_run else report.status.value
    stored = f"{report.checkpoints:,} of {counted(count, 'checkpoint')} stored"
    owner = "" if report.owner is None else f", owner {report.owner}"
    context.output.result(document, f"{own_id}: {status}, {stored}{owner}")
    if report.owner is None and not context.dry_run:
        many.check_owned(1, target.owner_from)


@contextmanager
def written_file(context: CommandContext, file: Path, *, replaces: bool = False) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when it is complete. Unless told to, ask before one is replaced."""
    if file == PIPE:
        if context.output.as_json:
            raise CommandError(Exit.USAGE, "--json prints a report about the file; give a file to write to")
        yield sys.stdout.buffer
        return
    if file.exists() and not file.is_file():
        raise CommandError(
            Exit.USAGE, f"{file} is not a file; give a file to write to, or - for standard output"
        )
    if file.exists() and not replaces:
        context.confirm(f"{file} is there already. Replace it?")
    # A link stays a link, and the file that it points to is replaced.
    file = file.resolve()
    with _refusing(file, "written"):
        # Only its owner can read the new file, whose random name nobody can have taken.
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    part = Path(name)
    try:
        with open(number, "wb") as stream:
            yield stream
        if file.exists():
            part.chmod(stat.S_IMODE(file.stat().st_mode))
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def say_written(
    context: CommandContext, file: Path, document: Mapping[str, Any], what: str, hint: str = ""
) -> None:
    """Report an export, unless it went to standard output."""
    if file != PIPE:
        context.output.result({**document, "file": str(file)}, f"exported: {what}, to {file}{hint}")


@contextmanager
def readable_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file that can be read twice. Standard input is copied to a temporary file first."""
    if file == PIPE:
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.seek(0)
            yield spool
        return
    with _refusing(file, "read"):
        stream = file.open("rb")
    with stream:
        yield stream


@contextmanager
def _refusing(file: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{file} cannot be {verb}: {error}") from error
