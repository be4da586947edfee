"""`cost`: the size of threads, and the mean cost of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean
from typing import Annotated, Any

import typer

from langgraph.cache.dynamodb.usage import cache_usage
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb._operations.overview import measure_thread
from langgraph.checkpoint.dynamodb._operations.usage import Account, Sum, account_of
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.many import Parallel, check_all_served, check_exists, serve
from langgraph.checkpoint.dynamodb.cli.output import dollars
from langgraph.checkpoint.dynamodb.cli.threads import all_threads
from langgraph.checkpoint.dynamodb.cli.values import counted, sized
from langgraph.store.dynamodb.usage import memory_usage


def cost(
    context: CommandContext,
    thread_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="THREAD", help="The threads; otherwise the whole table."),
    ] = None,
    *,
    parallel: Parallel = 4,
) -> None:
    """Show what threads store and cost, and what a step takes.

    Without threads as arguments, it counts the whole table, with memories and cached nodes. `prune --dry-run` says what
    a prune would save.

    Units are computed from the stored items, without retries and replaced items. Dollars are on demand in
    us-east-1.
    """
    given = thread_ids or list(all_threads(context))

    def one(thread_id: str) -> Account:
        if thread_ids:
            check_exists(context, thread_id)
        return account_of(context.run(measure_thread(context.storage, thread_id)))

    served = serve(context, "measuring threads", given, one, parallel=parallel)
    account = Account.sum_of(served.done.values())
    if not thread_ids:
        account.kinds |= context.run(memory_usage(context.storage))
        account.kinds |= context.run(cache_usage(context.storage))
    if context.output.as_json:
        outcome = {"threads": len(served.done), "absent": list(served.absent), "failed": served.failed}
        context.output.json(_as_json(account) | outcome)
    else:
        _print(context, account)
    if account.missing:
        segments = counted(account.missing, "segment")
        context.output.note(
            f"{segments} that checkpoints name cannot be found; `verify` says whether that is damage"
        )
    for thread_id, error in served.left.items():
        context.output.note(f"{thread_id} could not be read: {error}")
    check_all_served(served)


def _print(context: CommandContext, account: Account) -> None:
    rows = [(kind, *_row(each)) for kind, each in sorted(account.kinds.items())]
    rows += [
        ("  segments of several checkpoints", *_row(account.shared)),
        ("  segments of one checkpoint", *_row(account.own)),
        ("  segments that nothing names", *_row(account.unnamed)),
        ("all", *_row(account.total)),
    ]
    context.output.table(("", "items", "size", "$ a month"), rows)
    if account.steps:
        step = _mean_step(account)
        context.output.field(
            f"\nmean of {counted(len(account.steps), 'step')}",
            f"{step['write_units']:,.2f} write units, ${step['write_dollars']:,.8f}, to store it;"
            f" {step['read_units']:,.2f} read units, ${step['read_dollars']:,.8f}, to read it",
        )


def _row(each: Sum) -> Sequence[object]:
    return each.items, sized(each.bytes), dollars(each.month_dollars, 6)


def _mean_step(account: Account) -> dict[str, float]:
    written = mean(each.write_units for each in account.steps)
    read = mean(each.read_units for each in account.steps)
    return {
        "write_units": written,
        "write_dollars": written * WRITE_UNIT_DOLLARS,
        "read_units": read,
        "read_dollars": read * READ_UNIT_DOLLARS,
    }


def _as_json(account: Account) -> dict[str, Any]:
    def summed(each: Sum) -> dict[str, Any]:
        return {**asdict(each), "month_dollars": each.month_dollars}

    return {
        "items": {kind: summed(each) for kind, each in account.kinds.items()},
        "total": summed(account.total),
        "segments": {name: summed(getattr(account, name)) for name in ("shared", "own", "unnamed")},
        "missing_segments": account.missing,
        "steps": len(account.steps),
        "mean_step": _mean_step(account) if account.steps else None,
    }
