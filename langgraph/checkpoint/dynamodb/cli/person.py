"""`export` and `delete`: threads, or what a person has stored: an owner's threads, and the memories of namespaces."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._operations.arguments import checked_id
from .._operations.delete_owner import UNREADABLE, OwnerMemories, check_owner_keys, not_looked_at, owned
from .._operations.threads import ThreadSummary
from ..errors import CheckpointerInputError, CheckpointNotFoundError
from ..migrate import Exported, TableEndpoint, export_thread
from . import CommandError, Exit, files, listing, many
from .context import CommandContext
from .memories import count_memories, labels_text, one_namespace
from .output import counted, sized

# The file of an owner's folder that says whose the others are.
LIST = "threads.json"
_NAME_CHARACTERS = 60


def delete(
    context: CommandContext,
    thread_ids: many.ThreadIds = None,
    *,
    file: many.From = None,
    owner: listing.Owner = None,
    memories: list[str] | None = None,
) -> None:
    """Delete threads, or what a person has stored.

    It deletes a thread with everything that the thread ever stored. Only a backup or point-in-time recovery can bring
    it back. If a thread does not exist, the command deletes the others, and ends with exit code 3. --owner erases
    what a person has stored. At the end, it says what it did not look at.

    Options:
        memories NAMESPACE: With --owner: a namespace of the owner's memories, such as users/ada or users/{owner}. May
            be given several times.
    """
    if owner is not None and (thread_ids or file):
        raise CommandError(Exit.USAGE, "give threads, or --owner, not both")
    if memories and owner is None:
        raise CommandError(Exit.USAGE, "--memories needs --owner; `memories delete` deletes a namespace")
    if owner is not None:
        _delete_person(context, owner, memories)
        return
    found = many.chosen(context, thread_ids, file)
    context.confirm(f"Delete {counted(len(found), 'thread')} from table {context.options.table_name}?")
    if context.dry_run:
        served = many.serve(context, "looking for threads", found, lambda _: None, must_exist=True)
        many.conclude(context, "would delete", served)
    else:
        served = many.serve(context, "deleting", found, context.saver.delete_thread, must_exist=True)
        many.conclude(context, "deleted", served)


def _delete_person(context: CommandContext, owner: str, memories: Sequence[str] | None) -> None:
    store = context.store if memories else None
    try:
        namespaces = OwnerMemories(owner, map(one_namespace, memories or ()), store).namespaces
    except CheckpointerInputError as error:
        raise CommandError(Exit.USAGE, f"--memories: {error}") from error
    person = person_of(context, owner)
    count = sum(count_memories(context, each) for each in namespaces)
    report = {"namespaces": [labels_text(each) for each in namespaces]}
    if context.dry_run:
        served = many.Served(dict.fromkeys(person.thread_ids))
        person.note_unreadable(served)
        report = {**report, "not_looked_at": list(not_looked_at(owner, namespaces))}
        many.conclude(context, "would delete", served, {"memories": count}, report)
        person.check_has_threads()
        return
    what = f"{counted(len(person.thread_ids), 'thread')} and {counted(count, 'memory')}"
    context.confirm(f"Delete {what} from table {context.options.table_name}?")
    with context.output.progress("deleting", None):
        done = context.saver.delete_owner(owner, memories=namespaces, store=store, parallel=context.parallel)
    served = many.Served(dict.fromkeys(done.deleted), failed=dict(done.failed))
    report = {**report, "not_looked_at": list(done.not_looked_at)}
    many.conclude(context, "deleted", served, {"memories": done.memories}, report)
    if done.put_meanwhile:
        names = ", ".join(map(labels_text, done.put_meanwhile))
        msg = f"memories were put under {names} meanwhile; stop the agent, and run the same command again"
        raise CommandError(Exit.PROBLEMS, msg)
    person.check_has_threads()


@dataclass
class Person:
    """An owner's threads, as the directory has them."""

    owner: str
    threads: Sequence[ThreadSummary]
    unreadable: Sequence[str]
    """The threads that the index has as the owner's, and whose entry in the directory cannot be read."""

    @property
    def thread_ids(self) -> list[str]:
        """The threads whose entry can be read."""
        return [each.thread_id for each in self.threads]

    def note_unreadable(self, served: many.Served[Any]) -> None:
        """Count threads as failed whose owner cannot be read."""
        served.failed |= dict.fromkeys(self.unreadable, UNREADABLE)

    def check_has_threads(self) -> None:
        """Raise if the directory has no thread of the owner: a mistyped name must not look like success.

        Raises:
            CommandError: It has none.
        """
        if not self.thread_ids:
            msg = f"the directory has no thread of {self.owner}; if there was one, check the name"
            raise CommandError(Exit.NOT_FOUND, msg)


def person_of(context: CommandContext, owner: str) -> Person:
    """Look up what the table has of an owner, and say so.

    Raises:
        CheckpointerConfigurationError: The directory is encrypted, and there is no key, or not its `owner_key`.
    """
    storage = context.read_only_saver.storage
    threads = context.run(owned(storage, checked_id(owner, "owner")))
    if not threads:
        context.run(check_owner_keys(storage))
    # A thread whose entry can be read is listed only if the entry has this owner.
    readable = [each for each in threads if each.owner is not None]
    unreadable = [each.thread_id for each in threads if each.owner is None]
    count = counted(len(readable), "thread")
    context.output.note(
        f"The directory has {count} of {owner}. Threads without an owner are not looked at; `langgraph-dynamodb threads"
        " --without-owner` lists them."
    )
    return Person(owner, readable, unreadable)


def export(
    context: CommandContext,
    thread_id: str | None = None,
    file: files.Written = files.PIPE,
    *,
    owner: listing.Owner = None,
    to: Path | None = None,
    html: Path | None = None,
    mask: bool = False,
    channels: str | None = None,
) -> None:
    """Write a thread, or all threads of an owner, to files.

    A file of JSON lines has everything that belongs to the thread; `langgraph-dynamodb docs migrating` describes its
    format. It is not encrypted, even if the thread is: whoever has the file can read the conversation.

    --owner writes one file for each thread of the owner, and threads.json, which lists them with their titles. If a
    thread cannot be written, the command writes the others, and ends with exit code 8.

    --html writes the page of `view` with the thread in it: one file that needs no server and loads nothing, for a bug
    report. It cannot be imported. Ids, names of nodes and channels, and keys of objects stay readable under --mask.

    Options:
        thread_id [THREAD]: The id of the thread.
        to FOLDER: With --owner: the folder to write the files to.
        html FILE: Write a page for a browser instead; - is standard output.
        mask: With --html: leave out values. Types, names and sizes stay.
        channels NAMES: With --html: mask all but these, such as plan,messages.
    """
    if html is not None and thread_id is not None and file == files.PIPE and owner is None and to is None:
        _export_page(context, thread_id, html, mask=mask, channels=channels)
        return
    if html is not None or mask or channels is not None:
        raise CommandError(
            Exit.USAGE, "give a thread and --html with a file; --mask and --channels go with that"
        )
    if owner is not None and to is not None and thread_id is None:
        _export_owner(context, owner, to)
        return
    if thread_id is None or owner is not None or to is not None:
        raise CommandError(Exit.USAGE, "give a thread, or --owner with --to")
    with files.written_file(context, file) as stream:
        exported = export_thread(TableEndpoint(context.saver), thread_id, stream)
    checkpoints, writes = (
        counted(exported.checkpoints, "checkpoint"),
        counted(exported.writes, "pending write"),
    )
    files.say_written(context, file, vars(exported), f"{checkpoints} with {writes}, {sized(exported.bytes)}")


def _export_page(
    context: CommandContext, thread_id: str, file: Path, *, mask: bool, channels: str | None
) -> None:
    from ..view.page_file import page_file  # noqa: PLC0415 - `delete` does without the page.
    from ..view.thread_view import Session  # noqa: PLC0415

    if mask and channels is not None:
        raise CommandError(Exit.USAGE, "give --mask, which masks all channels, or --channels, not both")
    shows = () if mask else None if channels is None else tuple(channels.split(","))
    page = page_file(Session(context.saver), thread_id, shows).encode()
    with files.written_file(context, file) as stream:
        stream.write(page)
    document = {"thread_id": thread_id, "bytes": len(page)}
    files.say_written(context, file, document, sized(len(page)), "; open it in a browser")


def file_name(thread_id: str) -> str:
    """Return the name of a thread's file: readable, and another one for each id on every file system."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", thread_id)[:_NAME_CHARACTERS].strip("-")
    digest = hashlib.sha256(thread_id.encode()).hexdigest()[:16]
    return f"{readable or 'thread'}-{digest}.jsonl"


def _export_owner(context: CommandContext, owner: str, folder: Path) -> None:
    person = person_of(context, owner)
    if not person.unreadable:
        person.check_has_threads()
    _prepare(context, folder)
    source = TableEndpoint(context.saver)

    def write(thread_id: str) -> Exported | None:
        """Write a thread. One that the directory has without a checkpoint is in the list only."""
        try:
            with files.written_file(context, folder / file_name(thread_id), replaces=True) as stream:
                return export_thread(source, thread_id, stream)
        except CheckpointNotFoundError:
            return None

    served = many.serve(context, "exporting", person.thread_ids, write)
    listed = [
        {
            **listing.summary_as_json(each),
            "file": file_name(each.thread_id) if served.done.get(each.thread_id) else None,
        }
        for each in person.threads
    ]
    with files.written_file(context, folder / LIST, replaces=True) as stream:
        stream.write(json.dumps(listed, indent=2).encode())
    person.note_unreadable(served)
    written = [each for each in served.done.values() if each is not None]
    totals = {name: sum(getattr(each, name) for each in written) for name in ("checkpoints", "bytes")}
    others = [not_looked_at(owner, ())[0], "memories: `langgraph-dynamodb memories export` writes them"]
    many.conclude(context, "exported", served, totals, {"folder": str(folder), "not_looked_at": others})


def _prepare(context: CommandContext, folder: Path) -> None:
    """Make the folder. Ask before files in it are replaced."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{folder} cannot be a folder: {error}") from error
    if not is_empty:
        context.confirm(f"{folder} is not empty. Replace what it has of these threads?")
