"""`delete`: threads, or what a person has stored: the threads of an owner, and the memories of their namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from .._operations.arguments import checked_id
from .._operations.delete_owner import UNREADABLE, OwnerMemories, check_owner_keys, not_looked_at, owned
from .._operations.threads import ThreadSummary
from ..errors import CheckpointerInputError
from .command import DryRun, Yes
from .context import CommandContext
from .many import From, Parallel, Served, ThreadIds, chosen, conclude, serve
from .memories import count_memories, labels_text, one_namespace
from .outcome import CommandError, Exit
from .threads import Owner
from .values import counted

Memories: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--memories",
        metavar="NAMESPACE",
        help="With --owner: a namespace of the owner's memories, such as users/ada or users/{owner}. May be given"
        " several times.",
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
        _delete_person(context, owner, memories, parallel=parallel, yes=yes, dry_run=dry_run)
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
    context: CommandContext,
    owner: str,
    memories: Sequence[str] | None,
    *,
    parallel: int,
    yes: bool,
    dry_run: bool,
) -> None:
    store = context.store if memories else None
    try:
        namespaces = OwnerMemories(owner, map(one_namespace, memories or ()), store).namespaces
    except CheckpointerInputError as error:
        raise CommandError(Exit.USAGE, f"--memories: {error}") from error
    person = person_of(context, owner)
    count = sum(count_memories(context, each) for each in namespaces)
    if dry_run:
        served = Served(dict.fromkeys(person.thread_ids))
        person.note_unreadable(served)
        _conclude(context, "would delete", served, count, namespaces, not_looked_at(owner, namespaces))
        person.check_has_threads()
        return
    what = f"{counted(len(person.thread_ids), 'thread')} and {counted(count, 'memory', 'memories')}"
    context.confirm(f"Delete {what} from table {context.options.table_name}?", yes=yes)
    with context.output.progress("deleting", None):
        done = context.saver.delete_owner(owner, memories=namespaces, store=store, parallel=parallel)
    served = Served(dict.fromkeys(done.deleted), failed=dict(done.failed))
    _conclude(context, "deleted", served, done.memories, namespaces, done.not_looked_at)
    if done.put_meanwhile:
        names = ", ".join(map(labels_text, done.put_meanwhile))
        msg = f"memories were put under {names} meanwhile; stop the agent, and run the same command again"
        raise CommandError(Exit.PROBLEMS, msg)
    person.check_has_threads()


def _conclude(
    context: CommandContext,
    verb: str,
    served: Served[Any],
    memories: int,
    namespaces: Sequence[tuple[str, ...]],
    others: Sequence[str],
) -> None:
    report = {"namespaces": [labels_text(each) for each in namespaces], "not_looked_at": others}
    conclude(context, verb, served, {"memories": memories}, report)


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

    def note_unreadable(self, served: Served[Any]) -> None:
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
