"""The data of a person: the threads of an owner, and the memories of their namespaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from langgraph.checkpoint.dynamodb._operations.directory import ThreadSummary
from langgraph.checkpoint.dynamodb._operations.overview import is_stored
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.labels import labels_text, one_namespace
from langgraph.checkpoint.dynamodb.cli.many import Served, serve
from langgraph.checkpoint.dynamodb.cli.memories import count_memories
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.threads import of_directory
from langgraph.checkpoint.dynamodb.cli.values import counted
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError

# An owner of a tenant begins with the tenant's name and a slash.
_OWNER, _TENANT, _USER = "{owner}", "{tenant}", "{user}"
_PLACEHOLDER = re.compile("{(owner|tenant|user)}")
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
    thread_ids: list[str]
    unreadable: Sequence[str]
    """The threads that the index has as the owner's, and whose entry in the directory cannot be read."""
    namespaces: Sequence[tuple[str, ...]]

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

    def erase_memories(self) -> int:
        """Delete the memories of the owner's namespaces; return how many there were."""
        return sum(self.context.store.delete_namespace(each) for each in self.namespaces)

    def look_again(self, served: Served[None], *, parallel: int) -> None:
        """Count threads as failed that the table has after they were deleted, or that were begun meanwhile."""

        def check(thread_id: str) -> None:
            # The directory may lag behind a deletion.
            if self.context.run(is_stored(self.context.storage, thread_id)):
                msg = "the table has it again, or it was begun meanwhile; stop its agent, and run the command again"
                raise ThreadBusyError(msg)

        listed = [each.thread_id for each in _threads_of(self.context, self.owner)]
        wanted = dict.fromkeys([*served.done, *listed]).keys() - served.failed.keys() - {*self.unreadable}
        looked = serve(self.context, "looking again", sorted(wanted), check, parallel=parallel)
        served.done = {each: None for each in served.done if each in looked.done}
        served.failed |= looked.failed

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


def person_of(context: CommandContext, owner: str, templates: Sequence[str] | None) -> Person:
    """Look up what the table has of an owner, and say so.

    Raises:
        CommandError: A namespace cannot be used.
        CheckpointerConfigurationError: The directory is encrypted, and there is no key.
    """
    namespaces = _outermost([_namespace(owner, each) for each in templates or ()])
    threads = _threads_of(context, owner)
    if not threads and not context.storage.codec.encrypts:
        # Without the key nobody has threads in an encrypted directory; nor can any other entry of it be read.
        next(of_directory(context, None, with_status=False, for_operators=True), None)
    # A thread whose entry can be read is listed only if the entry has this owner.
    readable = [each.thread_id for each in threads if each.owner is not None]
    unreadable = [each.thread_id for each in threads if each.owner is None]
    count = counted(len(readable), "thread")
    context.output.note(
        f"The directory has {count} of {owner}. Threads without an owner are not looked at; `langgraph-dynamodb threads"
        " --without-owner` lists them."
    )
    return Person(context, owner, readable, unreadable, namespaces)


def _threads_of(context: CommandContext, owner: str) -> list[ThreadSummary]:
    return list(of_directory(context, owner, with_status=False, for_operators=True))


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
