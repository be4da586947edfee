"""`delete`: threads, or what a person has stored: the threads of an owner, and the memories of their namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from .._format.labels import label_of
from .._operations.arguments import checked_id
from .._operations.delete_owner import UNREADABLE, check_owner_keys, delete_owner, not_looked_at, owned
from .._operations.threads import ThreadSummary
from .command import DryRun, Yes
from .context import CommandContext
from .many import From, Parallel, Served, ThreadIds, chosen, conclude, serve
from .memories import count_memories, labels_text, one_namespace
from .outcome import CommandError, Exit
from .threads import Owner
from .values import counted

# How many threads of the directory are tried to see whether the keys are right.
_THREADS_TRIED = 10
Memories: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--memories",
        metavar="NAMESPACE",
        help="With --owner: a namespace of the owner's memories, such as users/ada; may be given several times.",
    ),
]


def delete(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    owner: Owner = None,
    memories: Memories = None,
    parallel: Parallel = 4,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete threads, or what a person has stored.

    It deletes a thread with everything that the thread ever stored. Only a backup or point-in-time recovery can bring
    it back. If a thread does not exist, the command deletes the others, and ends with exit code 3. --owner erases
    what a person has stored. At the end, it says what it did not look at.
    """
    if owner is not None and (thread_ids or file):
        raise CommandError(Exit.USAGE, "give threads, or --owner, not both")
    if memories and owner is None:
        raise CommandError(Exit.USAGE, "--memories needs --owner; `memories delete` deletes a namespace")
    if owner is not None:
        person = person_of(context, owner, memories)
        _delete_person(context, person, parallel=parallel, yes=yes, dry_run=dry_run)
        return
    found = chosen(context, thread_ids, file)
    if not dry_run:
        context.confirm(
            f"Delete {counted(len(found), 'thread')} from table {context.options.table_name}?", yes=yes
        )
    what = "looking for threads" if dry_run else "deleting"
    delete_one = (lambda _: None) if dry_run else context.saver.delete_thread
    served = serve(context, what, found, delete_one, parallel=parallel, must_exist=True)
    conclude(context, "would delete" if dry_run else "deleted", served)


def _delete_person(
    context: CommandContext, person: Person, *, parallel: int, yes: bool, dry_run: bool
) -> None:
    found, memories = person.thread_ids, person.count_memories()
    if dry_run:
        served = Served(dict.fromkeys(found))
        person.note_unreadable(served)
        conclude(context, "would delete", served, {"memories": memories}, person.report())
        person.check_has_threads()
        return
    what = f"{counted(len(found), 'thread')} and {counted(memories, 'memory', 'memories')}"
    context.confirm(f"Delete {what} from table {context.options.table_name}?", yes=yes)
    erased = person.erase_memories()
    with context.output.progress("deleting", None):
        outcome = context.run(delete_owner(context.storage, person.owner, parallel))
    served = Served(dict.fromkeys(outcome.deleted), failed=dict(outcome.failed))
    conclude(context, "deleted", served, {"memories": erased}, person.report())
    person.check_no_memory_is_left()
    person.check_has_threads()


@dataclass
class Person:
    """An owner's threads and memories, as the directory and the store have them."""

    context: CommandContext
    owner: str
    threads: Sequence[ThreadSummary]
    unreadable: Sequence[str]
    """The threads that the index has as the owner's, and whose entry in the directory cannot be read."""
    namespaces: Sequence[tuple[str, ...]]

    @property
    def thread_ids(self) -> list[str]:
        """The threads whose entry can be read."""
        return [each.thread_id for each in self.threads]

    def others(self) -> str:
        """Say which threads were not looked at."""
        return not_looked_at(self.owner)[0]

    def count_memories(self) -> int:
        """Count the memories of the owner's namespaces."""
        return sum(count_memories(self.context, each) for each in self.namespaces)

    def report(self) -> dict[str, Any]:
        """Return what was looked at, and what was not."""
        return {
            "namespaces": [labels_text(each) for each in self.namespaces],
            "not_looked_at": [
                self.others(),
                "memories outside these namespaces"
                if self.namespaces
                else "memories; --memories says which namespaces are the owner's",
                *not_looked_at(self.owner)[2:],
            ],
        }

    def note_unreadable(self, served: Served[Any]) -> None:
        """Count threads as failed whose owner cannot be read."""
        served.failed |= dict.fromkeys(self.unreadable, UNREADABLE)

    def erase_memories(self) -> int:
        """Delete the memories of the owner's namespaces; return how many there were."""
        return sum(self.context.store.delete_namespace(each) for each in self.namespaces)

    def check_has_threads(self) -> None:
        """Raise if the directory has no thread of the owner: a mistyped name must not look like success.

        Raises:
            CommandError: It has none.
        """
        if not self.thread_ids:
            msg = f"the directory has no thread of {self.owner}; if there was one, check the name"
            raise CommandError(Exit.NOT_FOUND, msg)

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


def person_of(context: CommandContext, owner: str, memories: Sequence[str] | None) -> Person:
    """Look up what the table has of an owner, and say so.

    Raises:
        CommandError: A namespace cannot be used, or the configured `owner_key` is not the directory's.
        CheckpointerConfigurationError: The directory is encrypted, and there is no key.
    """
    namespaces = _outermost([_namespace(owner, each) for each in memories or ()])
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
    return Person(context, owner, readable, unreadable, namespaces)


def _outermost(namespaces: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return namespaces, each of them once, without those under another one, whose memories are the other's too."""
    unique = list(dict.fromkeys(namespaces))
    return [
        each for each in unique if not any(each != other and each[: len(other)] == other for other in unique)
    ]


def _namespace(owner: str, text: str) -> tuple[str, ...]:
    labels = one_namespace(text)
    # An owner of a tenant begins with the tenant's name and a slash.
    user = owner.partition("/")[2] or owner
    if not {label_of(owner), label_of(user)} & {*labels}:
        # Otherwise one word too few would name everybody's memories.
        msg = f"--memories {text} has no label {user!r}; write for example users/{labels_text((label_of(user),))}"
        raise CommandError(Exit.USAGE, msg)
    return labels
