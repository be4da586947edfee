"""`doctor`: checks that everything is as the saver needs it, and remedies for what is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK, REGISTER_MARK
from langgraph.checkpoint.dynamodb._operations.listed_partitions import listed_items
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.examination import Examination
from langgraph.checkpoint.dynamodb.cli.findings import Finding, Verdict, asked, failed, ok, unknown
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.rights import rights, try_actions
from langgraph.checkpoint.dynamodb.cli.values import counted

if TYPE_CHECKING:
    pass

Role: TypeAlias = Literal["agent", "runner", "operator", "reader", "tenant"]
"""The policies of the templates."""


def doctor(
    context: CommandContext,
    *,
    role: Annotated[
        Role, typer.Option(help="The policy that the caller should have; the others are checked too.")
    ] = "agent",
    thread_id: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="A thread to try rights in that no agent uses; begin it with a tenant's prefix.",
        ),
    ] = "langgraph-dynamodb-doctor",
) -> None:
    """Check credentials, rights, the table and its settings.

    It also checks the clock and the network's delay, and prints a remedy for each problem. It changes nothing: to test
    rights to write, it sends requests whose condition cannot be true. If there is a problem, it ends with exit code 8.
    Decide yourself whether a warning matters.
    """
    findings = list(context.output.track("checking", _findings(context, role, thread_id)))
    _print(context, findings)
    problems = sum(each.verdict is Verdict.PROBLEM for each in findings)
    if problems:
        raise CommandError(Exit.PROBLEMS, f"{counted(problems, 'problem')}; the remedies are above")


def _findings(context: CommandContext, role: Role, thread_id: str) -> Iterator[Finding]:
    name = context.options.table_name
    client = asked(lambda: context.client)
    if isinstance(client, Exception):
        yield failed("client", name, client)
        return
    examination = Examination(client, context.session, context.options, thread_id)
    yield from examination.findings()
    if examination.is_answered:
        yield from rights(try_actions(client, name, thread_id), role)
        yield _partitions(context, "memories", REGISTER_MARK)
        yield _partitions(context, "node cache", CACHE_MARK)


def _partitions(context: CommandContext, check: str, mark: str) -> Finding:
    """Say how many partitions the table has besides those of threads, as the index lists them."""
    saver = context.configured_saver
    found = asked(lambda: saver.runner.run(listed_items(saver.storage.table, mark)))
    if isinstance(found, Exception):
        return unknown(check, "the index that lists them cannot be read")
    return ok(check, f"in {counted(len(found), 'partition')}" if found else "there are none")


def _print(context: CommandContext, findings: list[Finding]) -> None:
    if context.output.as_json:
        context.output.json([asdict(each) for each in findings])
        return
    context.output.table(
        ("", "check", "found"), [(each.verdict.value, each.check, each.says) for each in findings]
    )
    for each in findings:
        if each.remedy:
            context.output.field(f"\n{each.check}", each.remedy)
