"""`python -m langgraph.checkpoint.dynamodb`: the table's template, and the schema of a configuration."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from langgraph.checkpoint.dynamodb.cli.template import DEPLOY, HELP, template


def _schema() -> str:
    """The JSON Schema of a file that configures a checkpointer."""
    return (Path(__file__).parent / "config" / "checkpointer.schema.json").read_text(encoding="utf-8")


def main() -> None:
    """Run the command line that needs no extra."""
    parser = argparse.ArgumentParser(prog="python -m langgraph.checkpoint.dynamodb")
    commands = parser.add_subparsers(required=True, metavar="command")
    commands.add_parser(
        "template",
        help="print the CloudFormation template of the table and its policies",
        description=HELP,
        epilog=DEPLOY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).set_defaults(printed=template)
    commands.add_parser(
        "schema",
        help="print the JSON Schema of a file that configures a checkpointer",
        description="Print the JSON Schema of a file with a `checkpointer:`, by which editors check it.",
    ).set_defaults(printed=_schema)
    sys.stdout.write(parser.parse_args().printed())


if __name__ == "__main__":
    main()
