"""A person asks for their data, or for its erasure: the threads of an owner, and the memories of their namespaces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

import typer

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.plain import as_json
from langgraph.checkpoint.dynamodb._operations.directory import ThreadSummary
from langgraph.checkpoint.dynamodb._operations.overview import is_stored
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.labels import labels_text, one_namespace
from langgraph.checkpoint.dynamodb.cli.many import Served, conclude, serve
from langgraph.checkpoint.dynamodb.cli.memories import count_memories
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.streams import written_file
from langgraph.checkpoint.dynamodb.cli.threads import of_directory
from langgraph.checkpoint.dynamodb.cli.values import counted
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError
from langgraph.checkpoint.dynamodb.migrate import TableEndpoint, copy_id, export_thread
from langgraph.checkpoint.dynamodb.migrate.memory_file import write_memories

# An owner of a tenant begins with the tenant's name and a slash.
_OWNER, _TENANT, _USER = "{owner}", "{tenant}", "{user}"
_PLACEHOLDER = re.compile("{(owner|tenant|user)}")
_REPORT = "report.json"
_MEMORIES = "memories.jsonl"
_NAME_LENGTH_MAX = 100
Memories: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--memories",
        metavar="NAMESPACE",
        help="With --owner: a namespace of the owner's memories, such as users/{owner}; may be given several times.",
    ),
]


@dataclass
class Person:
    """An owner's threads and memories, as the directory and the store have them."""

    context: CommandContext
    owner: str
    threads: Mapping[str, ThreadSummary]
    """The threads by their ids."""
    unreadable: Sequence[str]
    """The threads that the index has as the owner's, and whose entry in the directory cannot be read."""
    namespaces: Sequence[tuple[str, ...]]

    @property
    def thread_ids(self) -> list[str]:
        """The ids of the owner's threads."""
        return list(self.threads)

    def count_memories(self) -> int:
        """Count the memories of the owner's namespaces."""
        return sum(count_memories(self.context, each) for each in self.namespaces)

    def report(self) -> dict[str, Any]:
        """Return what was looked at, and what was not."""
        return {
            "namespaces": [labels_text(each) for each in self.namespaces],
            "not_looked_at": [
                f"threads that the directory does not have as {self.owner}'s: `langgraph-dynamodb threads"
                " --without-owner` lists those without an owner",
                "memories outside these namespaces"
                if self.namespaces
                else "memories; --memories says which namespaces are the owner's",
                "the node cache",
                "what agents store while this runs",
                "backups, exported files and logs",
            ],
        }

    def note_unreadable(self, served: Served[Any]) -> None:
        """Count threads as failed whose owner cannot be read."""
        reason = (
            "its entry in the directory cannot be read; find out whose thread it is, and name it by its id"
        )
        served.failed |= dict.fromkeys(self.unreadable, reason)

    # Erasure

    def erase_memories(self) -> int:
        """Delete the memories of the owner's namespaces; return how many there were."""
        return sum(self.context.store.delete_namespace(each) for each in self.namespaces)

    def note_what_continued(self, served: Served[None], *, parallel: int) -> None:
        """Count threads as failed that were deleted, and that the table has again."""

        def check(thread_id: str) -> None:
            if self.context.run(is_stored(self.context.storage, thread_id)):
                msg = "the thread continued after it was deleted; stop its agent, and delete it again"
                raise ThreadBusyError(msg)

        looked = serve(self.context, "looking again", list(served.done), check, parallel=parallel)
        served.done = looked.done
        served.failed |= looked.failed

    def note_what_is_new(self, served: Served[None]) -> None:
        """Count threads as failed that were begun while the others were deleted."""
        for each in _threads_of(self.context, self.owner, self.threads.values()):
            # The directory may lag behind a deletion.
            if each.thread_id not in (*self.threads, *self.unreadable):
                served.failed[each.thread_id] = "the thread was begun while the others were deleted"

    def check_no_memory_is_left(self) -> None:
        """Raise if memories were put while the others were deleted.

        Raises:
            CommandError: There is one.
        """
        left = [
            labels_text(each)
            for each in self.namespaces
            if self.context.store.search(each, order="key", limit=1, refresh_ttl=False)
        ]
        if left:
            msg = f"memories were put under {', '.join(left)} meanwhile; run the same command again to delete them"
            raise CommandError(Exit.PROBLEMS, msg)

    # Export

    def export(self, folder: Path, *, parallel: int, yes: bool) -> None:
        """Write a file for each thread, one for the memories, and a report.

        A thread whose file is there is not exported again, unless the folder has the report of a finished export.
        """
        files = {each: folder / _file_name(each) for each in self.threads}
        self._prepare(folder, {each.name for each in files.values()}, yes=yes)
        # An interrupted export says whose it is, and which files it has.
        self._write_report(folder, {"finished": False}, {each: file.name for each, file in files.items()})

        def one(thread_id: str) -> None:
            with written_file(self.context, files[thread_id], yes=True) as stream:
                export_thread(TableEndpoint(self.context.saver), thread_id, stream)

        left = [each for each, file in files.items() if not file.exists()]
        served = serve(self.context, "exporting", left, one, parallel=parallel)
        served.skipped = len(files) - len(left)
        # A thread may have a title, and no checkpoint.
        served.done |= dict.fromkeys(served.absent)
        served.absent = {}
        self.note_unreadable(served)
        memories = self._export_memories(folder)
        outcome = {"finished": not served.failed, "memories": memories}
        written = {each: file.name for each, file in files.items() if file.exists()}
        report = self._write_report(folder, outcome, written)
        conclude(self.context, "exported", served, {"memories": memories}, report | {"folder": str(folder)})

    def _write_report(
        self, folder: Path, outcome: Mapping[str, Any], names: Mapping[str, str]
    ) -> dict[str, Any]:
        """Write the report, with the names of the threads' files; return what of it is for the screen."""
        report = self.report() | {"owner": self.owner, "exported_at": datetime.now(timezone.utc).isoformat()}
        if self.namespaces:
            report["memories_file"] = _MEMORIES
        threads = [{**asdict(each), "file": names.get(name)} for name, each in self.threads.items()]
        content = {**report, **outcome, "threads": threads}
        with written_file(self.context, folder / _REPORT, yes=True) as stream:
            stream.write(json.dumps(as_json(content), indent=2, default=str).encode() + b"\n")
        return report

    def _prepare(self, folder: Path, names: AbstractSet[str], *, yes: bool) -> None:
        """Make the folder, and remove what an earlier export of this owner wrote and this one does not continue."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            found = _earlier_report(folder)
            if found is None:
                return
            owner, finished = found["owner"], found["finished"]
            old = {Path(each["file"]).name for each in found["threads"] if each["file"]} | {_MEMORIES}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            msg = f"{folder} cannot be used to export to: {error!r}; give another folder"
            raise CommandError(Exit.USAGE, msg) from error
        if owner != self.owner:
            msg = f"{folder} is an export of {owner!r}, not of {self.owner!r}; give another folder"
            raise CommandError(Exit.USAGE, msg)
        if finished:
            question = f"{folder} has a finished export already. Replace it?"
            self.context.confirm(question, yes=yes, has_dry_run=False)
        kept = set() if finished else {*names, *([_MEMORIES] if self.namespaces else ())}
        for name in old - kept:
            (folder / name).unlink(missing_ok=True)
            (folder / f"{name}.part").unlink(missing_ok=True)

    def _export_memories(self, folder: Path) -> int:
        if not self.namespaces:
            return 0
        records = chain.from_iterable(map(self.context.store.export_items, self.namespaces))
        with written_file(self.context, folder / _MEMORIES, yes=True) as stream:
            return write_memories(records, stream)


def _earlier_report(folder: Path) -> Any:
    """Return the report of an earlier export to a folder; `None` if the folder is empty.

    Raises:
        CommandError: The folder has other files, which may be another person's.
    """
    report = folder / _REPORT
    if report.exists():
        return json.loads(report.read_text("utf-8"))
    # A process may have been killed while it wrote its first file, the report.
    if any(each.name != f"{_REPORT}.part" for each in folder.iterdir()):
        msg = f"{folder} has files, and no report of an export; give an empty folder"
        raise CommandError(Exit.USAGE, msg)
    return None


def person_of(context: CommandContext, owner: str, templates: Sequence[str] | None) -> Person:
    """Look up what the table has of an owner, and say so.

    Raises:
        CommandError: A namespace cannot be used.
    """
    namespaces = _outermost([_namespace(owner, each) for each in templates or ()])
    threads = _threads_of(context, owner)
    # A thread whose entry can be read is listed only if the entry has this owner.
    readable = {each.thread_id: each for each in threads if each.owner is not None}
    unreadable = [each.thread_id for each in threads if each.owner is None]
    count = counted(len(readable), "thread")
    context.output.note(
        f"The directory has {count} of {owner}. Threads without an owner are not looked at; `langgraph-dynamodb threads"
        " --without-owner` lists them."
    )
    return Person(context, owner, readable, unreadable, namespaces)


def _threads_of(
    context: CommandContext, owner: str, known: Iterable[ThreadSummary] = ()
) -> list[ThreadSummary]:
    """Return the threads of an owner, with the copies that an interrupted `set-ttl` left of these and known threads.

    A whole copy is in the directory, and may be all that there is of the thread. A part of one is not.
    """
    listed = {
        each.thread_id: each for each in of_directory(context, owner, with_status=False, for_operators=True)
    }
    originals = {copy_id(each.thread_id): each for each in (*known, *listed.values())}
    keys = []
    for each in originals.keys() - listed.keys():
        # An id that is too long for a key is no copy's.
        with suppress(CheckpointerInputError):
            keys.append(items.thread_key(items.partition_of(each)))
    found = context.run(context.storage.table.batch_get(keys, consistent=True))
    copies = [
        items.parse_partition(items.partition_key(each)).thread_id for each in found if items.COPY in each
    ]
    return [*listed.values(), *(replace(originals[each], thread_id=each) for each in copies)]


def _outermost(namespaces: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return namespaces, each of them once, without those under another one, whose memories are the other's too."""
    unique = list(dict.fromkeys(namespaces))
    return [
        each for each in unique if not any(each != other and each[: len(other)] == other for other in unique)
    ]


def _namespace(owner: str, template: str) -> tuple[str, ...]:
    if not any(each in template for each in (_OWNER, _USER)):
        # Otherwise one word too few would name everybody's memories.
        msg = f"--memories {template} has no {_OWNER} in it; write for example users/{_OWNER}"
        raise CommandError(Exit.USAGE, msg)
    tenant, slash, user = owner.partition("/")
    if not slash and (_TENANT in template or _USER in template):
        msg = f"owner {owner!r} has no tenant, so --memories cannot name {_TENANT} or {_USER}; use {_OWNER}"
        raise CommandError(Exit.USAGE, msg)
    parts = {_OWNER: owner, _TENANT: tenant, _USER: user}
    return one_namespace(_PLACEHOLDER.sub(lambda match: labels_text((parts[match[0]],)), template))


def _file_name(thread_id: str) -> str:
    """Return a name that every file system takes, and that no other thread has."""
    name = quote(thread_id, safe=" ")[:_NAME_LENGTH_MAX]
    return f"{name}-{blake2b(thread_id.encode(), digest_size=8).hexdigest()}.jsonl"
