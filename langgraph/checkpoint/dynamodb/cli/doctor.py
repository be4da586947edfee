"""`doctor`: checks that everything is as the saver needs it, and remedies for what is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Literal, TypeAlias

import typer

from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.examination import Examination
from langgraph.checkpoint.dynamodb.cli.findings import Finding, Verdict, asked, failed
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.rights import rights, try_actions
from langgraph.checkpoint.dynamodb.cli.values import counted

Role: TypeAlias = Literal["agent", "runner", "operator", "reader", "tenant"]
"""The policies of the templates."""


def doctor(
    context: CommandContext,
    *,
    role: Annotated[Role, typer.Option(help="The policy that the caller should have.")] = "agent",
    thread_id: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="A thread to try rights in that no agent uses; begin it with a tenant's prefix.",
        ),
    ] = "langgraph-dynamodb-doctor",
) -> None:
    """Check the connection, the rights, the table and the clock.

    It prints a remedy for each problem. It changes nothing: to test rights to write, it
    sends requests whose condition cannot be true. If there is a problem, it ends with exit code 8. Decide yourself
    whether a warning matters.
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
    examination = Examination(client, context.options, thread_id)
    yield from examination.findings()
    if examination.is_answered:
        yield rights(try_actions(client, name, thread_id), role)


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
