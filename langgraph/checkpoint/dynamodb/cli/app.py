"""The commands, in the order in which `--help` lists them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

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
from langgraph.checkpoint.dynamodb.cli.outcome import MEANINGS, Exit
from langgraph.checkpoint.dynamodb.cli.prune import prune
from langgraph.checkpoint.dynamodb.cli.restore import restore
from langgraph.checkpoint.dynamodb.cli.set_ttl import set_ttl
from langgraph.checkpoint.dynamodb.cli.setup import setup
from langgraph.checkpoint.dynamodb.cli.shipped import (
    DEPLOY,
    DOCS_HELP,
    LIST_HELP,
    POLICY_HELP,
    SCHEMA_HELP,
    TABLE_ARN,
    TABLE_ARN_HELP,
    TEMPLATE_HELP,
    TEMPLATE_NAME_HELP,
    document,
    print_template,
    schema,
)
from langgraph.checkpoint.dynamodb.cli.show import show
from langgraph.checkpoint.dynamodb.cli.threads import threads
from langgraph.checkpoint.dynamodb.cli.top import top
from langgraph.checkpoint.dynamodb.cli.verify import verify
from langgraph.checkpoint.dynamodb.cli.view import view
from langgraph.checkpoint.dynamodb.version import __version__

_EXIT_CODES = "\n\n".join(f"{code.value}: {meaning}" for code, meaning in MEANINGS.items())

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


def _as_it_is(text: str) -> str:
    """Return text whose later paragraphs Typer does not rewrap."""
    return text.replace("\n\n", "\n\n\b\n")


for each in (
    doctor,
    threads,
    show,
    history,
    diff,
    cost,
    top,
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
app.command(epilog=_as_it_is(PLACES_HELP))(command(migrate))


@app.command("template", help=TEMPLATE_HELP, epilog=_as_it_is(DEPLOY))
def _template(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=TEMPLATE_NAME_HELP)] = None,
    *,
    lists: Annotated[bool, typer.Option("--list", help=LIST_HELP)] = False,
    policy: Annotated[str | None, typer.Option(metavar="ROLE", help=POLICY_HELP)] = None,
    table_arn: Annotated[str, typer.Option(metavar="ARN", help=TABLE_ARN_HELP)] = TABLE_ARN,
) -> None:
    _print_shipped(lambda: print_template(name, policy, table_arn, lists=lists))


@app.command("docs", help=DOCS_HELP)
def _docs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The name of a document, such as bad-days; without it, the list."
        ),
    ] = None,
) -> None:
    _print_shipped(lambda: document(name))


def _print_shipped(find: Callable[[], str]) -> None:
    try:
        sys.stdout.write(find())
    except LookupError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.USAGE) from error


@app.command("schema", help=SCHEMA_HELP)
def _schema() -> None:
    sys.stdout.write(schema())
