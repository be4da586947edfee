"""The site's reference pages, generated from the code, so that they cannot be out of date.

`site.py` adds them to the site when it is built. They are not in `docs/`.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from typer.main import get_command

from langgraph.checkpoint.dynamodb import errors
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb.cli import Exit, printed
from langgraph.checkpoint.dynamodb.cli.app import LazyCommand, app
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.problems import TYPE_PREFIX
from langgraph.checkpoint.dynamodb.protocol import NAMES, TRANSITIONS

# The packages whose `__all__` is the public API, as an agent's developer comes to them.
PACKAGES = (
    "langgraph.checkpoint.dynamodb",
    "langgraph.store.dynamodb",
    "langgraph.cache.dynamodb",
    "langgraph.checkpoint.dynamodb.config",
    "langgraph.checkpoint.dynamodb.http",
    "langgraph.checkpoint.dynamodb.observe",
    "langgraph.checkpoint.dynamodb.tenants",
    "langgraph.checkpoint.dynamodb.migrate",
    "langgraph.checkpoint.dynamodb.gateway",
)
ROLES = ("runner", "agent", "operator", "reader", "tenant")


def public_names(package: str) -> dict[str, str]:
    """Return where each public class and function of a package is defined, by its name."""
    module = import_module(package)
    values = {name: getattr(module, name) for name in module.__all__}
    return {
        name: f"{value.__module__}.{name}"
        for name, value in values.items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }


def api() -> Iterator[str]:
    """Name what each package exports; mkdocstrings puts the docstrings there."""
    yield "# Python API\n"
    yield "This page is for developers who call the package. It is generated from the docstrings.\n"
    seen: set[str] = set()
    for package in PACKAGES:
        yield f"## {package}\n"
        yield f"{inspect.getdoc(import_module(package))}\n".split("\n\n")[0] + "\n"
        for target in public_names(package).values():
            if target not in seen and not target.startswith(errors.__name__):
                yield f"::: {target}\n"
            seen.add(target)
    yield "The exceptions are on the page [Errors](errors.md).\n"


def _row(*cells: object) -> str:
    """Return a row of a table. A cell is one line, and a bar in it does not end it."""
    return "| " + " | ".join(" ".join(str(each).split()).replace("|", "\\|") for each in cells) + " |"


def _head(*names: str) -> str:
    return f"{_row(*names)}\n|{'---|' * len(names)}"


def _commands(group: object) -> Iterator[tuple[str, Any]]:
    """Load the commands of a group, and of a group in it. Yield them with their names, such as `memories list`."""
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", each) for inner, each in _commands(command))
        else:
            yield name, command.loaded() if isinstance(command, LazyCommand) else command


def command_line() -> Iterator[str]:
    """Print the help of each command."""
    yield "# Commands\n"
    yield "This page is for people who run `langgraph-dynamodb` by hand or in a script. It is generated"
    yield "from `--help`. [The command line](../command-line.md) has examples.\n"
    _, parsers = printed.parsers()
    for name, command in _commands(get_command(app)):
        context = click.Context(command, info_name=f"langgraph-dynamodb {name}")
        help_ = parsers[name].format_help() if name in parsers else command.get_help(context)
        yield f"## {name}\n"
        yield f"```text\n{help_.rstrip()}\n```\n"
    yield "## Exit codes\n"
    yield _head("code", "meaning")
    yield from (_row(code.value, code.meaning) for code in Exit)


def permissions() -> Iterator[str]:
    """Print each IAM policy, from the templates."""
    yield "# IAM policies\n"
    yield "This page is for administrators who review permissions. It is generated from the templates."
    yield "`langgraph-dynamodb template --policy ROLE` prints a policy, too."
    yield "[Permissions](../permissions.md) says whom each is for.\n"
    for role in ROLES:
        yield f"## {role}\n"
        yield f"```json\n{printed.policy(role, 'TABLE').rstrip()}\n```\n"


def error_classes() -> list[type[CheckpointerError]]:
    """Return the exceptions in the order of `errors.py`."""
    return [
        each
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, CheckpointerError)
    ]


def error_page() -> Iterator[str]:
    """List the exceptions with cause and remedy, from their docstrings."""
    yield "# Errors\n"
    yield "This page is for developers who handle or report an error. It is generated from"
    yield f"`{errors.__name__}`. Every message names what is wrong and what to do about it."
    yield "[The runbook](../runbook.md) lists messages, and the commands that help.\n"
    yield "An error of a request that failed also has `code`, AWS's code such as `ThrottlingException`;"
    yield "`attempts`, how often the request was sent; and `request_id`, AWS's or the gateway's. In every"
    yield "other error they are `None`.\n"
    yield _head("exception", "also a", "cause", "remedy", "problem type of the gateway")
    for each in error_classes():
        cause, _, remedy = (inspect.getdoc(each) or "").partition("\n\n")
        others = [base.__name__ for base in each.__bases__ if not issubclass(base, CheckpointerError)]
        names = ", ".join(f"`{name}`" for name in others if name != "Exception")
        yield _row(f"`{each.__name__}`", names, cause, remedy, f"`{TYPE_PREFIX}{each.__name__}`")


def stored_format() -> Iterator[str]:
    """Show the table's schema, and the transitions of the protocol."""
    yield "# Stored format\n"
    yield "This page is for developers who read the table without this package. It is generated from the"
    yield "code. [Design](../design.md) explains it.\n"
    yield "## Table\n"
    yield f"```json\n{json.dumps(table_schema('langgraph-checkpoints'), indent=2)}\n```\n"
    yield "## Changes of a thread item\n"
    yield "`:read_x` is what the attribute was when it was read: if it was absent, it has to be absent.\n"
    yield _head("change", "by", "from", "to", "condition")
    for each in TRANSITIONS:
        condition = re.sub(r"#\w+", lambda match: NAMES[match[0]], each.condition)
        yield _row(
            f"`{each.change}`", each.by, ", ".join(each.before), each.after or "as before", f"`{condition}`"
        )


# What builds each page, by its address in the site.
PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "reference/api.md": api,
    "reference/commands.md": command_line,
    "reference/permissions.md": permissions,
    "reference/errors.md": error_page,
    "reference/stored-format.md": stored_format,
}
