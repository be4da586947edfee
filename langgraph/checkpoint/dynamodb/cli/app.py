"""The command line: its options, its lists of commands, and its exit codes. It loads no command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb.cli import printed
from langgraph.checkpoint.dynamodb.cli.commands import COMMANDS, MEMORIES, Command, Listed
from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from langgraph.checkpoint.dynamodb.version import __version__

_EXIT_CODES = "\n\n".join(f"{code.value}: {code.meaning}" for code in Exit)

app = typer.Typer(
    name="langgraph-dynamodb",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Inspect and maintain a table of langgraph-dynamodb.",
    epilog=f"Exit codes:\n\n{_EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _before(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    del version


def _list(commands: Mapping[str, Command], group: typer.Typer) -> None:
    """Add commands to a group, which lists them without loading them."""
    for name, each in commands.items():
        group.command(name, cls=Listed, help=each.summary)(each.load)


_memories = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, get, delete and move the memories of a store.",
)
_list(COMMANDS, app)
_list(MEMORIES, _memories)
app.add_typer(_memories, name="memories")


def _print(context: typer.Context) -> None:
    """Let `printed` read the arguments, as it does without the extra."""
    printed.main([str(context.info_name), *context.args])


for name, help_ in printed.COMMANDS.items():
    as_given = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=help_, add_help_option=False, context_settings=as_given)(_print)
