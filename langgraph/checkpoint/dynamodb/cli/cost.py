"""`cost`: what threads take up, what their steps cost, and what a prune would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean
from typing import Annotated, Any

import typer

from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb._operations.delete import is_of_any_age
from langgraph.checkpoint.dynamodb._operations.survey import measure_thread
from langgraph.checkpoint.dynamodb.cli.accounts import Account, Pruned, Sum, account_of, pruned
from langgraph.checkpoint.dynamodb.cli.desk import Desk
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.threads import all_threads
from langgraph.checkpoint.dynamodb.cli.values import sized


def cost(
    desk: Desk,
    thread_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="THREAD", help="The threads; otherwise the whole table."),
    ] = None,
    *,
    keep_last: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="How many checkpoints of each namespace a prune would keep."),
    ] = 1,
    steps: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many of the newest steps to list; 0 lists none.")
    ] = 10,
) -> None:
    """Say what threads take up and cost, and what prune saves.

    Units are those of the items as they are stored: what was tried twice, or replaced, is not seen any more.
    Dollars are on demand in us-east-1.
    """
    given = thread_ids or list(all_threads(desk))
    account = Account()
    saved: list[Pruned] = []
    with desk.output.progress("measuring threads", len(given)) as bar:
        for each in given:
            inventories = desk.run(measure_thread(desk.table, each))
            account.include(account_of(inventories))
            saved.append(pruned(inventories, keep_last, is_of_any_age))
            bar.advance()
    if thread_ids and not account.steps:
        msg = f"there is no checkpoint in {', '.join(map(repr, thread_ids))}; `threads` lists what there is"
        raise CommandError(Exit.NOT_FOUND, msg)
    total = Pruned.sum_of(saved)
    account.steps.sort(key=lambda each: each.checkpoint_id, reverse=True)
    if desk.output.as_json:
        desk.output.json(_as_json(given, account, total))
        return
    _print_items(desk, account)
    _print_steps(desk, account, steps)
    desk.output.field(
        f"\nprune --keep-last {keep_last}",
        f"takes out {total.checkpoints:,} checkpoints, {_summed(total.freed)}, by"
        f" {total.write_units:,} write units, ${total.write_units * WRITE_UNIT_DOLLARS:,.6f}",
    )


def _print_items(desk: Desk, account: Account) -> None:
    rows = [(kind, *_row(each)) for kind, each in sorted(account.kinds.items())]
    rows += [
        ("  segments of several checkpoints", *_row(account.shared)),
        ("  segments of one checkpoint", *_row(account.own)),
        ("  segments that nothing names", *_row(account.unnamed)),
        ("all", *_row(account.total)),
    ]
    desk.output.table(("", "items", "size", "$ a month"), rows)


def _row(each: Sum) -> Sequence[object]:
    return each.items, sized(each.bytes), f"{each.month_dollars:,.6f}"


def _summed(each: Sum) -> str:
    return f"{each.items:,} items, {sized(each.bytes)}, ${each.month_dollars:,.6f} a month"


def _print_steps(desk: Desk, account: Account, count: int) -> None:
    if not account.steps:
        return
    desk.output.text()
    header = ("step", "namespace", "write units", "$ to write", "read units", "$ to read")
    rows: list[Sequence[object]] = [
        (each.checkpoint_id, each.namespace, *_priced(each.write_units, each.read_units))
        for each in account.steps[:count]
    ]
    written, read = _means(account)
    rows.append((f"mean of {len(account.steps):,}", "", *_priced(written, read)))
    desk.output.table(header, rows)


def _means(account: Account) -> tuple[float, float]:
    steps = account.steps
    return mean(each.write_units for each in steps), mean(each.read_units for each in steps)


def _priced(written: float, read: float) -> Sequence[object]:
    return (
        float(written),
        f"{written * WRITE_UNIT_DOLLARS:.8f}",
        float(read),
        f"{read * READ_UNIT_DOLLARS:.8f}",
    )


def _as_json(thread_ids: Sequence[str], account: Account, saved: Pruned) -> dict[str, Any]:
    def summed(each: Sum) -> dict[str, Any]:
        return {**asdict(each), "month_dollars": each.month_dollars}

    return {
        "threads": len(thread_ids),
        "items": {kind: summed(each) for kind, each in account.kinds.items()},
        "total": summed(account.total),
        "segments": {
            "shared": summed(account.shared),
            "own": summed(account.own),
            "unnamed": summed(account.unnamed),
        },
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
