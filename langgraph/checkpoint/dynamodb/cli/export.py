"""`export`: a thread as a file, or all threads of an owner as a folder of files."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated

import typer

from .._operations.delete_owner import not_looked_at
from ..errors import CheckpointNotFoundError
from ..migrate import Exported, TableEndpoint, export_thread
from ..view.page_file import page_file
from ..view.thread_view import Session
from .command import Yes
from .context import CommandContext
from .delete import person_of
from .files import PIPE, Written, written_file
from .many import Served, conclude, serve
from .outcome import CommandError, Exit
from .threads import Owner, summary_as_json
from .values import counted, sized

# The file of an owner's folder that says whose the others are.
LIST = "threads.json"
_NAME_CHARACTERS = 60
_THREADS_AT_ONCE = 4


def export(
    context: CommandContext,
    thread_id: Annotated[
        str | None, typer.Argument(metavar="[THREAD]", help="The id of the thread.", show_default=False)
    ] = None,
    file: Written = PIPE,
    *,
    owner: Owner = None,
    folder: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="With --owner: the folder to write the files to."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write a page for a browser instead; - is standard output."
        ),
    ] = None,
    mask: Annotated[
        bool, typer.Option("--mask", help="With --html: leave out values. Types, names and sizes stay.")
    ] = False,
    channels: Annotated[
        str | None,
        typer.Option(
            "--channels", metavar="NAMES", help="With --html: mask all but these, such as plan,messages."
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Write a thread, or all threads of an owner, to files.

    A file of JSON lines has everything that belongs to the thread; `langgraph-dynamodb docs migrating` describes its
    format. It is not encrypted, even if the thread is: whoever has the file can read the conversation.

    --owner writes one file for each thread of the owner, and threads.json, which lists them with their titles. If a
    thread cannot be written, the command writes the others, and ends with exit code 8.

    --html writes the page of `view` with the thread in it: one file that needs no server and loads nothing, for a bug
    report. It cannot be imported. Ids, names of nodes and channels, and keys of objects stay readable under --mask.
    """
    if html is not None and thread_id is not None and file == PIPE and owner is None and folder is None:
        _export_page(context, thread_id, html, mask=mask, channels=channels, yes=yes)
        return
    if html is not None or mask or channels is not None:
        raise CommandError(
            Exit.USAGE, "give a thread and --html with a file; --mask and --channels go with that"
        )
    if owner is not None and folder is not None and thread_id is None:
        _export_owner(context, owner, folder, yes=yes)
        return
    if thread_id is None or owner is not None or folder is not None:
        raise CommandError(Exit.USAGE, "give a thread, or --owner with --to")
    with written_file(context, file, yes=yes) as stream:
        exported = export_thread(TableEndpoint(context.saver), thread_id, stream)
    if file != PIPE:
        context.output.result(
            {**vars(exported), "file": str(file)},
            f"exported: {counted(exported.checkpoints, 'checkpoint')} with"
            f" {counted(exported.writes, 'pending write')}, {sized(exported.bytes)}, to {file}",
        )


def _export_page(
    context: CommandContext, thread_id: str, file: Path, *, mask: bool, channels: str | None, yes: bool
) -> None:
    if mask and channels is not None:
        raise CommandError(Exit.USAGE, "give --mask, which masks all channels, or --channels, not both")
    shows = () if mask else None if channels is None else tuple(channels.split(","))
    page = page_file(Session(context.saver), thread_id, shows).encode()
    with written_file(context, file, yes=yes) as stream:
        stream.write(page)
    if file != PIPE:
        document = {"thread_id": thread_id, "bytes": len(page), "file": str(file)}
        context.output.result(document, f"exported: {sized(len(page))}, to {file}; open it in a browser")


def file_name(thread_id: str) -> str:
    """Return the name of a thread's file: readable, and another one for each id on every file system."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", thread_id)[:_NAME_CHARACTERS].strip("-")
    digest = hashlib.sha256(thread_id.encode()).hexdigest()[:16]
    return f"{readable or 'thread'}-{digest}.jsonl"


def _export_owner(context: CommandContext, owner: str, folder: Path, *, yes: bool) -> None:
    person = person_of(context, owner)
    if not person.unreadable:
        person.check_has_threads()
    _prepare(context, folder, yes=yes)
    saver = context.saver

    def write(thread_id: str) -> Exported | None:
        """Write a thread. One that the directory has without a checkpoint is in the list only."""
        try:
            with written_file(context, folder / file_name(thread_id), yes=True) as stream:
                return export_thread(TableEndpoint(saver), thread_id, stream)
        except CheckpointNotFoundError:
            return None

    served = serve(context, "exporting", person.thread_ids, write, parallel=_THREADS_AT_ONCE)
    listed = [
        {
            **summary_as_json(each),
            "file": file_name(each.thread_id) if served.done.get(each.thread_id) else None,
        }
        for each in person.threads
    ]
    with written_file(context, folder / LIST, yes=True) as stream:
        stream.write(json.dumps(listed, indent=2).encode())
    person.note_unreadable(served)
    conclude(context, "exported", served, _totals(served), {
        "folder": str(folder),
        "not_looked_at": [not_looked_at(owner, ())[0], "memories: `langgraph-dynamodb memories export` writes them"],
    })  # fmt: skip


def _prepare(context: CommandContext, folder: Path, *, yes: bool) -> None:
    """Make the folder. Ask before files in it are replaced."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{folder} cannot be a folder: {error}") from error
    if not is_empty:
        context.confirm(
            f"{folder} is not empty. Replace what it has of these threads?", yes=yes, has_dry_run=False
        )


def _totals(served: Served[Exported | None]) -> dict[str, int]:
    written = [each for each in served.done.values() if each is not None]
    return {
        "checkpoints": sum(each.checkpoints for each in written),
        "bytes": sum(each.bytes for each in written),
    }
