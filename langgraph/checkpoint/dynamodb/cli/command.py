"""Turns a function into a command: the options that all commands have, the context, and an exit code for every end."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from .._operations.arguments import COUNT_MAX
from .._runtime.failures import error_code
from .connection import ConnectionArguments
from .context import CommandContext
from .outcome import Exit
from .output import Output

Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Change things without asking.")]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be changed, and change nothing.")
]
ThreadId: TypeAlias = Annotated[str, typer.Argument(metavar="THREAD", help="The id of the thread.")]
Namespace: TypeAlias = Annotated[
    str, typer.Option("--namespace", metavar="NS", help="The namespace of a subgraph; the root's is empty.")
]
Limit: TypeAlias = Annotated[
    int, typer.Option(min=0, max=COUNT_MAX, metavar="N", help="How many to list, the newest; 0 lists all.")
]


def _shared(
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name or ARN of the table; otherwise as configured.")
    ] = None,
    endpoint_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Another endpoint than AWS's own, such as http://localhost:8000 for DynamoDB Local.",
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(metavar="REGION", help="The AWS region; otherwise as configured, or as boto3 finds it."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE", help="The AWS profile; otherwise as configured, or as boto3 finds it."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A YAML file that configures the checkpointer; otherwise the environment does,"
            " by LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME and the like.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")] = False,
) -> CommandContext:
    """Make the context from the options that every command has."""
    return CommandContext(
        ConnectionArguments(table, endpoint_url, region, profile, config), Output(as_json=json)
    )


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that takes a context first, and then options of its own.

    Args:
        function: The function. Its docstring is the help; its exceptions become a message and an exit code.

    Returns:
        A function that Typer takes as a command, with the options that every command has.
    """
    # `typing.get_type_hints` wraps the annotation of an option whose default is None in Optional on Python 3.10.
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = inspect.signature(_shared, eval_str=True).parameters

    @functools.wraps(function)
    def run(**options: Any) -> None:
        context = _shared(**{name: options.pop(name) for name in shared})
        try:
            with context:
                function(context, **options)
        except KeyboardInterrupt:
            context.output.note("interrupted")
            raise typer.Exit(Exit.INTERRUPTED) from None
        except Exception as error:
            from .explanations import explained  # noqa: PLC0415 - is seldom needed.

            end = explained(error, context.table_name)
            if end is None:
                raise
            # The message names the region.
            is_missing = error_code(error.__cause__ or error) == "ResourceNotFoundException"
            endpoint = context.custom_endpoint if is_missing else None
            context.output.error(f"{end}; the endpoint is {endpoint}" if endpoint else str(end))
            raise typer.Exit(end.code) from error

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *shared.values())]
    # Typer reads both the signature and the annotations.
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
