"""`python -m langgraph.checkpoint.dynamodb template`: the table's template, wherever the package is installed."""

from __future__ import annotations

import argparse
import sys

from langgraph.checkpoint.dynamodb.cli.template import DEPLOY, HELP, template


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
    )
    parser.parse_args()
    sys.stdout.write(template())


if __name__ == "__main__":
    main()
