"""Upkeep: `setup` makes the table, `verify` checks that all is there and intact, `prune` removes old checkpoints."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Annotated

import typer

from .._format import items, moments, schema
from .._operations import arguments, delete
from .._operations.verify import Verification, repair_thread, scan_partitions, verify_thread
from ..errors import CheckpointNotFoundError
from . import CommandError, Exit, many
from .context import CommandContext
from .output import counted, parse_age, sized

_PRODUCTION = f"""\
This makes a table without recovery, deletion protection, policies or alarms. For anything but development deploy it:
  make deploy                                  (in a clone of the repository, with alarms and a dashboard)
  {schema.TEMPLATE_COMMAND} > table.yaml
  aws cloudformation deploy --stack-name langgraph-checkpoints --template-file table.yaml --capabilities CAPABILITY_IAM\
"""


def setup(context: CommandContext) -> None:
    """Create the table for development, or check it.

    On AWS, it first says how to deploy the template instead, and asks. With an endpoint other than AWS's, it does
    not ask.
    """
    name, address = context.options.table_name, context.client.meta.endpoint_url
    if ".amazonaws.com" in address:
        context.output.note(_PRODUCTION)
        context.confirm(f"Create table {name} at {address} anyway?")
    context.saver.setup()
    document = {"table_name": name, "endpoint_url": address}
    context.output.result(document, f"table {name} is ready at {address}")


def verify(
    context: CommandContext,
    thread_ids: many.ThreadIds = None,
    *,
    file: many.From = None,
    all_threads: many.AllThreads = False,
    repair: bool = False,
) -> None:
    """Check everything that threads have stored.

    It checks checksums, segments, the ancestors of delta channels, namespaces and epochs. It deserializes no value,
    and changes nothing without --repair. Segments and writes that nothing needs count as left over after an hour;
    younger ones may belong to a put under way.

    --repair claims the thread, and removes segments and writes that nothing needs, but no checkpoint. If only the scan
    of --all finds a namespace, it registers the namespace, so that deletions find it. It cannot repair damage: restore
    the item from a backup, or delete the thread.

    Options:
        repair: Remove what nothing can reach. Agents can continue meanwhile.
    """
    many.check_all_or_named(thread_ids, file, all_threads=all_threads)
    scanned = _scanned(context) if all_threads else {}
    wanted = list(scanned) if all_threads else many.chosen(context, thread_ids, file)

    def check(thread_id: str) -> Verification:
        operation = verify_thread(context.read_only_saver.storage, thread_id, scanned.get(thread_id, ()))
        verified = context.run(operation)
        if not verified.is_stored:
            raise CheckpointNotFoundError(many.NO_SUCH_THREAD)
        return verified

    checked = many.serve(context, "verifying", wanted, check)
    found = {each: checked.done[each] for each in wanted if each in checked.done}
    dirty = [each for each in found if found[each].has_leftovers]
    repaired = many.Served[None]()
    if repair and dirty:
        question = f"Remove what nothing can reach from {counted(len(dirty), 'thread')}?"
        context.confirm(question)

        def mend(thread_id: str) -> None:
            context.run(repair_thread(context.storage, found[thread_id]))

        repaired = many.serve(context, "repairing", dirty, mend)
    # A deletion leaves the thread's epoch, which a scan finds, so an absent thread is no error then.
    absent = {} if all_threads else checked.absent
    served = many.Served(repaired.done, absent, {**checked.failed, **repaired.failed})
    _show(context, list(found.values()), served)
    _conclude(list(found.values()), served)


def _conclude(results: Sequence[Verification], served: many.Served[None]) -> None:
    """End with an error if something is wrong, was not checked, or does not exist."""
    # A repair registers namespaces, and leaves damage.
    unsound = sum(
        bool(each.flaws) if each.thread_id in served.done else not each.is_sound for each in results
    )
    if unsound:
        raise CommandError(Exit.PROBLEMS, f"{counted(unsound, 'thread')} failed verification")
    unreadable = sum(bool(each.unreadable) for each in results)
    if unreadable and not served.failed:
        msg = (
            f"{counted(unreadable, 'thread')} could not be opened with the configured key or serializer; checksums and"
            " segments were checked, and are right"
        )
        raise CommandError(Exit.CONFIGURATION, msg)
    many.check_all_served(served)


def _scanned(context: CommandContext) -> dict[str, set[str]]:
    """Return the partitions of every thread, found by a scan."""
    count = context.announce_scan(" Then each thread is read as well, which costs about as much again.")
    found: dict[str, set[str]] = {}
    with context.output.progress("scanning items", count) as advance:
        for keys, read in context.stream(scan_partitions(context.storage)):
            for pk in keys:
                # Items of another saver have no such key.
                if "#" in pk:
                    found.setdefault(items.parse_partition(pk).thread_id, set()).add(pk)
            advance(read)
    return found


def _show(context: CommandContext, results: Sequence[Verification], served: many.Served[None]) -> None:
    if context.output.as_json:
        threads = [{**asdict(each), "sound": each.is_sound} for each in results]
        repaired, absent = list(served.done), list(served.absent)
        context.output.json(
            {"threads": threads, "repaired": repaired, "absent": absent, "failed": served.failed}
        )
        return
    sums = [
        counted(sum(getattr(each, f"{noun}s") for each in results), noun)
        for noun in ("checkpoint", "task", "segment", "item")
    ]
    size = sized(sum(each.bytes for each in results))
    context.output.text(f"verified: {counted(len(results), 'thread')}, {', '.join(sums)}, {size}")
    for each in results:
        for line in _lines(each):
            context.output.field(each.thread_id, line)
    for thread_id in served.done:
        context.output.field(thread_id, "repaired")
    for thread_id, error in served.left.items():
        context.output.field(thread_id, error)


def _lines(found: Verification) -> list[str]:
    """Return the lines for a thread: damage, leftovers, and what else is worth knowing."""
    lines = [f"damaged: {message}" for message in found.messages]
    if found.flaws > len(found.messages):
        lines.append(f"damaged: {found.flaws - len(found.messages):,} more like these")
    if found.unreadable:
        count = counted(found.unreadable, "segment or checkpoint", "segments and checkpoints")
        lines.append(
            f"cannot be opened: {count}, whose checksums are right; the first: {found.why_unreadable}"
        )
    lines += [f"unknown namespace: {each!r}; --repair makes it known" for each in found.unknown_namespaces]
    said = {
        f"{counted(found.orphans, 'segment')} ({sized(found.orphan_bytes)}) that nothing names": found.orphans,
        f"writes of {counted(found.abandoned, 'task')} without a checkpoint": found.abandoned,
        f"{counted(found.empty_namespaces, 'empty namespace')}": found.empty_namespaces,
    }
    leftovers = [text for text, count in said.items() if count]
    if leftovers:
        lines.append(f"left over: {', '.join(leftovers)}; --repair removes them")
    said = {
        f"{counted(found.passed_over, 'checkpoint')} never acknowledged, which readers pass over": found.passed_over,
        f"{counted(found.uncommitted, 'whole checkpoint')} that may not have been acknowledged": found.uncommitted,
        f"{counted(found.cut, 'older checkpoint')} whose delta channels cannot be rebuilt since runs were deleted": (
            found.cut
        ),
        f"{counted(found.recent, 'segment or task', 'segments and tasks')} that a put under way may need": found.recent,
        f"{counted(found.expired, 'expired checkpoint')}": found.expired,
        "a deletion is under way": int(found.claimed),
    }
    return lines + [text for text, count in said.items() if count]


def prune(
    context: CommandContext,
    thread_ids: many.ThreadIds = None,
    *,
    file: many.From = None,
    all_threads: many.AllThreads = False,
    keep_last: Annotated[int, typer.Option(min=1, max=arguments.COUNT_MAX)] = 1,
    older_than: Annotated[timedelta | None, typer.Option(parser=parse_age)] = None,
) -> None:
    """Remove old checkpoints from threads.

    It also removes writes and values that only these checkpoints need, and keeps what runs from the others need.
    Agents can keep running. Ages come from LangGraph's checkpoint ids; checkpoints with other ids never count as old.

    Options:
        keep_last N: The number of checkpoints that a prune keeps in each namespace.
        older_than AGE: Remove only checkpoints that are older, such as 30d, 12h or 2w.
    """
    many.check_all_or_named(thread_ids, file, all_threads=all_threads)
    found = many.chosen(context, thread_ids, file, scan=all_threads)
    now = datetime.now(timezone.utc)
    is_old = delete.is_of_any_age if older_than is None else partial(_is_older, now, older_than)
    if context.dry_run:

        def foresee(thread_id: str) -> delete.Forecast:
            return context.run(delete.foresee_prune(context.storage, thread_id, keep_last, is_old))

        served = many.serve(context, "counting", found, foresee, must_exist=not all_threads)
        totals = Counter[str]()
        for each in served.done.values():
            totals.update(asdict(each))
        many.conclude(context, "would prune", served, totals)
        return
    aged = "" if older_than is None else f" of those older than {older_than}"
    kept = "the newest checkpoint" if keep_last == 1 else f"the newest {keep_last} checkpoints"
    what = f"{counted(len(found), 'thread')} of table {context.options.table_name}"
    context.confirm(f"Prune {what}, and keep{aged} {kept} of each namespace?")

    def one(thread_id: str) -> None:
        context.run(delete.prune_thread(context.storage, thread_id, keep_last, is_old))

    many.conclude(
        context,
        "pruned",
        many.serve(context, "pruning", found, one, must_exist=not all_threads),
    )


def _is_older(now: datetime, age: timedelta, checkpoint_id: str) -> bool:
    stored = moments.stored_at(checkpoint_id)
    return stored is not None and now - stored > age
