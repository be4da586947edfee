"""The commands, in the order in which `--help` lists them."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb.cli.command import command
from langgraph.checkpoint.dynamodb.cli.copy import copy
from langgraph.checkpoint.dynamodb.cli.cost import cost
from langgraph.checkpoint.dynamodb.cli.delete import delete
from langgraph.checkpoint.dynamodb.cli.diff import diff
from langgraph.checkpoint.dynamodb.cli.doctor import doctor
from langgraph.checkpoint.dynamodb.cli.history import history
from langgraph.checkpoint.dynamodb.cli.outcome import MEANINGS
from langgraph.checkpoint.dynamodb.cli.prune import prune
from langgraph.checkpoint.dynamodb.cli.setup import setup
from langgraph.checkpoint.dynamodb.cli.show import show
from langgraph.checkpoint.dynamodb.cli.template import DEPLOY, HELP, template
from langgraph.checkpoint.dynamodb.cli.threads import threads

_EXIT_CODES = "\n\n".join(f"{code.value}: {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    name="langgraph-dynamodb",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look into a table of langgraph-dynamodb, and after it.",
    epilog=f"Exit codes:\n\n{_EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(metadata.version("langgraph-dynamodb"))
        raise typer.Exit


@app.callback()
def _before(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    del version


for each in (doctor, threads, show, history, diff, cost, setup, copy, prune, delete):
    app.command()(command(each))


@app.command("template", help=HELP, epilog=DEPLOY)
def _template() -> None:
    sys.stdout.write(template())
