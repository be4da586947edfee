"""Files that a command writes and reads: whole or not there at all, and pipes in their place."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit

PIPE = Path("-")


@contextmanager
def written_file(context: CommandContext, file: Path, *, yes: bool) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete. Ask before one is replaced."""
    if file == PIPE:
        if context.output.as_json:
            raise CommandError(Exit.USAGE, "--json prints a report about the file; give a file to write to")
        yield sys.stdout.buffer
        return
    if file.exists():
        context.confirm(f"{file} is there already. Replace it?", yes=yes)
    part = file.with_name(f"{file.name}.part")
    try:
        stream = part.open("wb")
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{part} cannot be written: {error}") from error
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
    try:
        stream = file.open("rb")
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{file} cannot be read: {error}") from error
    with stream:
        yield stream
