"""Make the stack of `table.yaml` in a CloudFormation on this machine: `python -m infra.deploy_local STACK [--wait]`."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from tools.engine import FOREIGN_VARIABLES, LOCAL_ENVIRONMENT
from tools.server import until_interrupted

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

TEMPLATE = Path(__file__).with_name("table.yaml")
# moto resolves the export StreamArn without looking at its condition, and leaves a hole in a list where CloudFormation
# leaves an element out. With a stream and a customer key neither shows; moto does nothing with them.
PARAMETERS = {
    "StreamViewType": "KEYS_ONLY",
    "Encryption": "CUSTOMER",
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/local",
    "DeletionProtection": "false",
}


def create_stack(cloudformation: CloudFormationClient, name: str, table_name: str) -> dict[str, str]:
    """Make the stack.

    Args:
        cloudformation: A client of the local CloudFormation.
        name: The stack's name.
        table_name: The table's name.

    Returns:
        The stack's outputs.

    Raises:
        ClientError: The stack or the table exists, or CloudFormation refuses the template.
    """
    cloudformation.create_stack(
        StackName=name,
        TemplateBody=TEMPLATE.read_text(),
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in {**PARAMETERS, "TableName": table_name}.items()
        ],
        Capabilities=["CAPABILITY_IAM"],
    )
    [stack] = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.deploy_local", description=__doc__)
    parser.add_argument("stack", help="the stack's name")
    parser.add_argument("--wait", action="store_true", help="wait for Ctrl-C afterwards")
    options = parser.parse_args()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB")
    if not endpoint:
        sys.exit("Say where the engine answers: make deploy-local ENDPOINT=http://127.0.0.1:5000")
    # The account that this machine is configured for must not be deployed to by a target that says local.
    for variable in FOREIGN_VARIABLES:
        os.environ.pop(variable, None)
    os.environ.update(LOCAL_ENVIRONMENT)
    with contextlib.closing(boto3.client("cloudformation", endpoint_url=endpoint)) as cloudformation:
        try:
            outputs = create_stack(cloudformation, options.stack, options.stack)
        except (BotoCoreError, ClientError, ResponseParserError) as error:
            sys.exit(
                f"{error}\nEither the stack or its table exists already, or there is no CloudFormation at {endpoint}."
                " DynamoDB Local has none: make the table with DynamoDBSaver(...).setup() there."
            )
    lines = [f"{name}  {value}" for name, value in outputs.items()]
    variables = {
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "TABLE_NAME": outputs["TableName"],
        **LOCAL_ENVIRONMENT,
    }
    lines += [
        "To use it:",
        f"  unset {' '.join(FOREIGN_VARIABLES)}",
        f"  export {' '.join(f'{name}={value}' for name, value in variables.items())}",
    ]
    if options.wait:
        lines.append("Ctrl-C ends the engine, and the table with it.")
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()
    if options.wait:
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
