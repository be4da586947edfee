"""The package's own files, printed without an extra and without a saver: version, documents, template, schema."""

from __future__ import annotations

import argparse
import sys

from langgraph.checkpoint.dynamodb.cli.shipped import (
    DEPLOY,
    DOCS_HELP,
    SCHEMA_HELP,
    TEMPLATE_HELP,
    document,
    schema,
    template,
)
from langgraph.checkpoint.dynamodb.version import __version__


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m langgraph.checkpoint.dynamodb")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    docs = commands.add_parser("docs", help=DOCS_HELP, description=DOCS_HELP)
    docs.add_argument("name", nargs="?", metavar="NAME", help="the document; otherwise the list")
    commands.add_parser(
        "template",
        help=TEMPLATE_HELP,
        description=TEMPLATE_HELP,
        epilog=DEPLOY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands.add_parser("schema", help=SCHEMA_HELP, description=SCHEMA_HELP)
    given = parser.parse_args()
    if given.command != "docs":
        sys.stdout.write(template() if given.command == "template" else schema())
        return
    try:
        sys.stdout.write(document(given.name))
    except LookupError as error:
        parser.error(str(error))
