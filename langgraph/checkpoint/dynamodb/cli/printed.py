"""The package's own files, printed without an extra and without a saver: version, documents, templates."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from .._format.schema import TEMPLATE_COMMAND
from ..version import __version__
from .shipped import TABLE_ARN, document, print_template

COMMANDS = {
    "template": "Print a CloudFormation template, or a policy as JSON.",
    "docs": "Print a document of this release, or the list of them.",
}
"""The commands with their help."""
_DEPLOY = f"""\
Deploy it with the AWS CLI, and attach the agent policy of its outputs to the role that runs your agents:

  {TEMPLATE_COMMAND} > table.yaml
  aws cloudformation deploy --stack-name langgraph-checkpoints --template-file table.yaml --capabilities CAPABILITY_IAM
  aws cloudformation describe-stacks --stack-name langgraph-checkpoints --query "Stacks[0].Outputs"

The table is called langgraph-checkpoints unless you add --parameter-overrides TableName=...
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the command line asks for."""
    parser, _ = parsers()
    given = parser.parse_args(arguments)
    try:
        if given.command == "docs":
            text = document(given.name)
        else:
            if given.table_arn and not given.policy:
                parser.error("argument --table-arn: it is the table of a policy; add --policy")
            text = print_template(given.name, given.policy, given.table_arn or TABLE_ARN, lists=given.list)
    except LookupError as error:
        parser.error(str(error))
    sys.stdout.write(text)


def parsers() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser of the whole command line, and those of its commands."""
    parser = argparse.ArgumentParser(prog="langgraph-dynamodb")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    template, docs = (
        commands.add_parser(
            name, help=text, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        for name, text in COMMANDS.items()
    )
    template.epilog = _DEPLOY
    printed = template.add_mutually_exclusive_group()
    printed.add_argument(
        "name", nargs="?", metavar="NAME", help="The template, such as gateway; otherwise that of the table."
    )
    printed.add_argument("--list", action="store_true", help="Print the list of templates instead.")
    printed.add_argument(
        "--policy",
        metavar="ROLE",
        help="Print a policy as JSON instead: agent, runner, operator, reader, or tenant by session tag.",
    )
    template.add_argument(
        "--table-arn", metavar="ARN", help=f"The table that the policy is for; otherwise {TABLE_ARN}."
    )
    docs.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="The name of a document, such as runbook; without it, the list.",
    )
    return parser, commands.choices
