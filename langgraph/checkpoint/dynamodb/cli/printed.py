"""The package's own files, printed without an extra and without a saver: version, documents, template, schema."""

from __future__ import annotations

import argparse
import sys

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
from langgraph.checkpoint.dynamodb.version import __version__


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m langgraph.checkpoint.dynamodb")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    docs = commands.add_parser("docs", help=DOCS_HELP, description=DOCS_HELP)
    docs.add_argument("name", nargs="?", metavar="NAME", help="the document; otherwise the list")
    template = commands.add_parser(
        "template",
        help=TEMPLATE_HELP,
        description=TEMPLATE_HELP,
        epilog=DEPLOY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    template.add_argument("name", nargs="?", metavar="NAME", help=TEMPLATE_NAME_HELP)
    template.add_argument("--list", action="store_true", help=LIST_HELP)
    template.add_argument("--policy", metavar="ROLE", help=POLICY_HELP)
    template.add_argument("--table-arn", metavar="ARN", default=TABLE_ARN, help=TABLE_ARN_HELP)
    commands.add_parser("schema", help=SCHEMA_HELP, description=SCHEMA_HELP)
    given = parser.parse_args()
    try:
        if given.command == "docs":
            text = document(given.name)
        elif given.command == "template":
            text = print_template(given.name, given.policy, given.table_arn, lists=given.list)
        else:
            text = schema()
    except LookupError as error:
        parser.error(str(error))
    sys.stdout.write(text)
