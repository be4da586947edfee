"""The descriptions of managed policies, word for word: a changed one makes a new policy, whose ARN others import.

IAM cannot change a description, so CloudFormation replaces the policy. Its ARN is exported, and CloudFormation refuses
to change an export that another stack imports: who has agents or tenants could not update the table's stack any more.
"""

from __future__ import annotations

from tests.infra.rendering import INFRA, load

PINNED = {
    "gateway-ecs.yaml": {"SecretPolicy": "Reads the secrets of the gateway, and nothing else."},
    "gateway.yaml": {
        "ClientPolicy": "For an agent that keeps its threads through the gateway."
        " It calls the function URL and nothing else.",
        "LogPolicy": "Writes the log of the gateway, and nothing else.",
    },
    "table.yaml": {
        "AgentPolicy": "For a process that runs agents and deletes threads."
        " No Scan, no DescribeTable, no administration of the table.",
        "OperatorPolicy": "For maintenance of threads, that is prune, delete and listing across threads."
        " No administration.",
        "ReaderPolicy": "For a process that shows threads and never changes them.",
        "RunnerPolicy": "For a process that runs agents and deletes no threads."
        " No DeleteItem, no index, no claim on a thread.",
    },
    "tenant.yaml": {
        "TenantPolicy": "For an agent of one tenant. Lists the threads of its own owners only."
        " Denies all other partitions."
    },
    "tenant-role.yaml": {
        "BrokerPolicy": "For the service. It may assume the role of the tenants, and nothing else."
    },
}


def test_no_description_of_a_policy_changes() -> None:
    found = {
        str(path.relative_to(INFRA)): {
            name: resource["Properties"]["Description"]
            for name, resource in load(str(path.relative_to(INFRA)))["Resources"].items()
            if resource["Type"] == "AWS::IAM::ManagedPolicy"
        }
        for path in INFRA.rglob("*.yaml")
    }
    assert {name: policies for name, policies in found.items() if policies} == PINNED
