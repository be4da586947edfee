"""The commands, in the order in which `--help` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb.cli import printed
from langgraph.checkpoint.dynamodb.cli.command import command
from langgraph.checkpoint.dynamodb.cli.copy import copy
from langgraph.checkpoint.dynamodb.cli.cost import cost
from langgraph.checkpoint.dynamodb.cli.delete import delete
from langgraph.checkpoint.dynamodb.cli.diff import diff
from langgraph.checkpoint.dynamodb.cli.directory import directory
from langgraph.checkpoint.dynamodb.cli.doctor import doctor
from langgraph.checkpoint.dynamodb.cli.files import export, import_
from langgraph.checkpoint.dynamodb.cli.gateway import gateway
from langgraph.checkpoint.dynamodb.cli.history import history
from langgraph.checkpoint.dynamodb.cli.memories import memories
from langgraph.checkpoint.dynamodb.cli.migrate import PLACES_HELP, migrate
from langgraph.checkpoint.dynamodb.cli.outcome import Exit
from langgraph.checkpoint.dynamodb.cli.prune import prune
from langgraph.checkpoint.dynamodb.cli.restore import restore
from langgraph.checkpoint.dynamodb.cli.set_ttl import set_ttl
from langgraph.checkpoint.dynamodb.cli.setup import setup
from langgraph.checkpoint.dynamodb.cli.show import show
from langgraph.checkpoint.dynamodb.cli.threads import threads
from langgraph.checkpoint.dynamodb.cli.verify import verify
from langgraph.checkpoint.dynamodb.cli.view import view
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


for each in (
    doctor,
    threads,
    show,
    history,
    diff,
    cost,
    verify,
    view,
    setup,
    directory,
    export,
    import_,
    copy,
    restore,
    set_ttl,
    prune,
    delete,
    gateway,
):
    # `import_` has an underscore since `import` is a keyword of Python.
    app.command(each.__name__.rstrip("_").replace("_", "-"))(command(each))
app.add_typer(memories, name="memories")
app.command(epilog=PLACES_HELP)(command(migrate))


def _print(context: typer.Context) -> None:
    """Let `printed` read the arguments, as it does without the extra."""
    printed.main([str(context.info_name), *context.args])


for name, help_ in printed.COMMANDS.items():
    as_given = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=help_, add_help_option=False, context_settings=as_given)(_print)
