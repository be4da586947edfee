"""`python -m langgraph.checkpoint.dynamodb`: the table's template, and the schema of a configuration."""

from __future__ import annotations

import argparse
import sys

from langgraph.checkpoint.dynamodb.cli.shipped import DEPLOY, SCHEMA_HELP, TEMPLATE_HELP, schema, template


def main() -> None:
    """Run the command line that needs no extra."""
    parser = argparse.ArgumentParser(prog="python -m langgraph.checkpoint.dynamodb")
    commands = parser.add_subparsers(required=True, metavar="command")
    commands.add_parser(
        "template",
        help=TEMPLATE_HELP,
        description=TEMPLATE_HELP,
        epilog=DEPLOY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).set_defaults(printed=template)
    commands.add_parser("schema", help=SCHEMA_HELP, description=SCHEMA_HELP).set_defaults(printed=schema)
    sys.stdout.write(parser.parse_args().printed())


if __name__ == "__main__":
    main()
