"""A construct of the AWS CDK for the checkpoint table, its index, its policies and its alarms.

It includes the templates of langgraph-dynamodb as they are, so there is no second description to fall behind:

    Checkpoints(stack, "Checkpoints", table={"TableName": "agents"}).runner_policy

It takes `pip install aws-cdk-lib` and this package, or `table.yaml` and `observability.yaml` in `folder`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from aws_cdk import CfnResource, Fn, Stack, aws_iam
from aws_cdk.cloudformation_include import CfnInclude
from constructs import Construct

_PRINT = [sys.executable, "-m", "langgraph.checkpoint.dynamodb", "template"]


class Checkpoints(Construct):
    """The table of `table.yaml`, and in a stack of its own the alarms of `observability.yaml`.

    Attributes:
        table_name: What `DynamoDBSaver` takes.
        table_arn: The table's ARN.
        agent_policy: For what runs agents and deletes threads.
        runner_policy: For what runs agents and deletes no threads.
        operator_policy: For what prunes and deletes.
        reader_policy: For what only looks.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: Mapping[str, object] | None = None,
        alarms: Mapping[str, object] | None = None,
        folder: str | None = None,
    ) -> None:
        """Include the templates.

        Args:
            scope: The stack that gets the table and its policies.
            construct_id: The construct's id in it.
            table: Parameters of `table.yaml`; the others have their defaults.
            alarms: Parameters of `observability.yaml`; None for no alarms.
            folder: Where the templates are; by default this package prints them.
        """
        super().__init__(scope, construct_id)
        included = CfnInclude(
            self, "Table", template_file=_template("table", folder), parameters=dict(table or {})
        )
        resource = included.get_resource("Table")
        self.table_name: str = resource.ref
        self.table_arn: str = Fn.get_att(resource.logical_id, "Arn").to_string()
        self.agent_policy = self._policy(included.get_resource("AgentPolicy"))
        self.runner_policy = self._policy(included.get_resource("RunnerPolicy"))
        self.operator_policy = self._policy(included.get_resource("OperatorPolicy"))
        self.reader_policy = self._policy(included.get_resource("ReaderPolicy"))
        if alarms is not None:
            # The alarms import what the table's stack exports, so they cannot be of the same stack.
            stack = Stack.of(self)
            watching = Stack(self, "Observability")
            watching.add_dependency(stack)
            CfnInclude(
                watching,
                "Alarms",
                template_file=_template("observability", folder),
                parameters={"TableStackName": stack.stack_name, **alarms},
            )

    def _policy(self, resource: CfnResource) -> aws_iam.IManagedPolicy:
        return aws_iam.ManagedPolicy.from_managed_policy_arn(self, resource.logical_id, resource.ref)


def _template(name: str, folder: str | None) -> str:
    if folder is not None:
        return str(Path(folder) / f"{name}.yaml")
    path = Path(tempfile.mkdtemp()) / f"{name}.yaml"
    path.write_bytes(subprocess.run([*_PRINT, name], check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
    return str(path)
