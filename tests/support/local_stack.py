"""The stack of `infra/table.yaml` in moto's CloudFormation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

TEMPLATE = Path(__file__).parents[2] / "infra" / "table.yaml"
# moto resolves the export StreamArn without looking at its condition, and leaves a hole in a list where CloudFormation
# leaves an element out. With a stream and a customer key neither shows; moto does nothing with them.
PARAMETERS = {
    "StreamViewType": "KEYS_ONLY",
    "Encryption": "CUSTOMER",
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/local",
    "DeletionProtection": "false",
}


def create_stack(cloudformation: CloudFormationClient, name: str, table_name: str) -> dict[str, str]:
    """Make the stack, and return its outputs."""
    parameters = {**PARAMETERS, "TableName": table_name}
    cloudformation.create_stack(
        StackName=name,
        TemplateBody=TEMPLATE.read_text(encoding="utf-8"),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    [stack] = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
