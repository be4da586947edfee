"""`python -m langgraph.checkpoint.dynamodb template`: the table's template, wherever the package is installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from langgraph.checkpoint.dynamodb._format.schema import TEMPLATE_COMMAND

_DEPLOY = f"""\
Deploy it with the AWS CLI, and attach the agent policy of its outputs to the role that runs your agents:

  {TEMPLATE_COMMAND} > table.yaml
  aws cloudformation deploy --stack-name langgraph-checkpoints --template-file table.yaml --capabilities CAPABILITY_IAM
  aws cloudformation describe-stacks --stack-name langgraph-checkpoints --query "Stacks[0].Outputs"

The table is called langgraph-checkpoints unless you add --parameter-overrides TableName=...
"""


def _template() -> str:
    """The template beside this file, where the package was built with it, or else in the source tree."""
    here = Path(__file__).parent
    shipped = here / "table.yaml"
    return (shipped if shipped.exists() else here.parents[2] / "infra" / "table.yaml").read_text(
        encoding="utf-8"
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m langgraph.checkpoint.dynamodb")
    commands = parser.add_subparsers(required=True, metavar="command")
    commands.add_parser(
        "template",
        help="print the CloudFormation template of the table and its policies",
        description="Print the CloudFormation template of the table and its policies.",
        epilog=_DEPLOY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args()
    sys.stdout.write(_template())


if __name__ == "__main__":
    main()
