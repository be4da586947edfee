"""`cost`: the size of threads, the cost of their steps, and the savings of a prune."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean
from typing import Annotated, Any

import typer

from langgraph.cache.dynamodb.usage import cache_usage
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb._operations.delete import is_of_any_age
from langgraph.checkpoint.dynamodb._operations.overview import measure_thread
from langgraph.checkpoint.dynamodb._operations.usage import Account, Pruned, Sum, account_of, pruned
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.many import (
    KeepLast,
    Parallel,
    Served,
    check_all_served,
    check_exists,
    serve,
)
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
    keep_last: KeepLast = 1,
    steps: Annotated[
        int, typer.Option(min=0, metavar="N", help="The number of newest steps to list; 0 lists none.")
    ] = 10,
    parallel: Parallel = 4,
) -> None:
    """Show what threads store and cost, and what a prune would save.

    Without threads as arguments, it counts the whole table, with memories and cached nodes.

    Units are computed from the stored items, without retries and replaced items. Dollars are on demand in
    us-east-1.
    """
    given = thread_ids or list(all_threads(context))

    def one(thread_id: str) -> tuple[Account, Pruned]:
        if thread_ids:
            check_exists(context, thread_id)
        inventories = context.run(measure_thread(context.storage, thread_id))
        return account_of(inventories), pruned(inventories, keep_last, is_of_any_age)

    served = serve(context, "measuring threads", given, one, parallel=parallel)
    account = Account.sum_of(each for each, _ in served.done.values())
    saved = Pruned.sum_of(each for _, each in served.done.values())
    if not thread_ids:
        account.kinds |= context.run(memory_usage(context.storage))
        account.kinds |= context.run(cache_usage(context.storage))
    if context.output.as_json:
        outcome = {
            "threads": len(served.done),
            "absent": list(served.absent),
            "failed": served.failed,
        }
        context.output.json(_as_json(account, saved) | outcome)
    else:
        _print_items(context, account)
        _print_steps(context, account, steps)
        context.output.field(
            f"\nprune --keep-last {keep_last}",
            f"takes out {counted(saved.checkpoints, 'checkpoint')}, {_summed(saved.freed)}, by"
            f" {counted(saved.write_units, 'write unit')}, ${saved.write_units * WRITE_UNIT_DOLLARS:,.6f}",
        )
    _say_what_is_wrong(context, account, served)


def _say_what_is_wrong(context: CommandContext, account: Account, served: Served[Any]) -> None:
    """Report what could not be counted, and end with an error if that is a whole thread."""
    if account.missing:
        segments = counted(account.missing, "segment")
        context.output.note(
            f"{segments} that checkpoints name cannot be found; `verify` says whether that is damage"
        )
    for thread_id, error in served.left.items():
        context.output.note(f"{thread_id} could not be read: {error}")
    check_all_served(served)


def _print_items(context: CommandContext, account: Account) -> None:
    rows = [(kind, *_row(each)) for kind, each in sorted(account.kinds.items())]
    rows += [
        ("  segments of several checkpoints", *_row(account.shared)),
        ("  segments of one checkpoint", *_row(account.own)),
        ("  segments that nothing names", *_row(account.unnamed)),
        ("all", *_row(account.total)),
    ]
    context.output.table(("", "items", "size", "$ a month"), rows)


def _row(each: Sum) -> Sequence[object]:
    return each.items, sized(each.bytes), dollars(each.month_dollars, 6)


def _summed(each: Sum) -> str:
    return f"{counted(each.items, 'item')}, {sized(each.bytes)}, ${each.month_dollars:,.6f} a month"


def _print_steps(context: CommandContext, account: Account, count: int) -> None:
    if not account.steps:
        return
    context.output.text()
    # Narrow enough for half a screen.
    header = ("step", "write\nunits", "$ to\nwrite", "read\nunits", "$ to\nread")
    rows: list[Sequence[object]] = [
        (f"{each.checkpoint_id} {each.namespace}".rstrip(), *_priced(each.write_units, each.read_units))
        for each in account.steps[:count]
    ]
    written = mean(each.write_units for each in account.steps)
    read = mean(each.read_units for each in account.steps)
    rows.append((f"mean of {len(account.steps):,}", *_priced(written, read)))
    context.output.table(header, rows)


def _priced(written: float, read: float) -> Sequence[object]:
    return (
        float(written),
        dollars(written * WRITE_UNIT_DOLLARS, 8),
        float(read),
        dollars(read * READ_UNIT_DOLLARS, 8),
    )


def _as_json(account: Account, saved: Pruned) -> dict[str, Any]:
    def summed(each: Sum) -> dict[str, Any]:
        return {**asdict(each), "month_dollars": each.month_dollars}

    return {
        "items": {kind: summed(each) for kind, each in account.kinds.items()},
        "total": summed(account.total),
        "segments": {
            "shared": summed(account.shared),
            "own": summed(account.own),
            "unnamed": summed(account.unnamed),
        },
        "missing_segments": account.missing,
        "steps": [
            {
                **asdict(each),
                "write_dollars": each.write_units * WRITE_UNIT_DOLLARS,
                "read_dollars": each.read_units * READ_UNIT_DOLLARS,
            }
            for each in account.steps
        ],
        "prune": {
            "checkpoints": saved.checkpoints,
            "freed": summed(saved.freed),
            "write_units": saved.write_units,
        },
    }
