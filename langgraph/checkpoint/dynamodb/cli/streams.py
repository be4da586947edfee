"""Files that a command writes and reads: whole or not there at all, and pipes in their place."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, TypeAlias

import typer

from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit

PIPE = Path("-")
Written: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="[FILE]", help="The file to write; - is standard output.", show_default=False),
]


@contextmanager
def written_file(context: CommandContext, file: Path, *, yes: bool) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete. Ask before one is replaced."""
    if file == PIPE:
        if context.output.as_json:
            raise CommandError(Exit.USAGE, "--json prints a report about the file; give a file to write to")
        yield sys.stdout.buffer
        return
    if file.exists() and not file.is_file():
        raise CommandError(
            Exit.USAGE, f"{file} is not a file; give a file to write to, or - for standard output"
        )
    if file.exists():
        context.confirm(f"{file} is there already. Replace it?", yes=yes, has_dry_run=False)
    # A link stays a link, and the file that it points to is replaced.
    file = file.resolve()
    part = file.with_name(f"{file.name}.part")
    stream = _open(part, "wb")
    try:
        with stream:
            yield stream
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def readable_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file that can be read twice. Standard input is copied to a temporary file first."""
    if file == PIPE:
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.seek(0)
            yield spool
        return
    with _open(file, "rb") as stream:
        yield stream


def _open(file: Path, mode: Literal["rb", "wb"]) -> BinaryIO:
    try:
        return file.open(mode)
    except OSError as error:
        verb = "read" if mode == "rb" else "written"
        raise CommandError(Exit.USAGE, f"{file} cannot be {verb}: {error}") from error
