"""What `infra/regulated.yaml` makes, and that its outputs are what the other templates take."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.infra.authorization import Request, is_allowed
from tests.infra.rendering import Node, StackRefusedError, load, render
from tests.infra.test_gateway_templates import NETWORK, PACKAGE, TOKENS

TEMPLATE = load("regulated.yaml")
COPY_KEY = "arn:aws:kms:us-west-2:123456789012:key/copies"
OPTIONS = {
    "VaultLock": "COMPLIANCE",
    "CopyVaultKeyArn": COPY_KEY,
    "CopyVaultArn": "arn:aws:backup:us-west-2:123456789012:backup-vault:copies",
}
REGULATED = render(TEMPLATE, OPTIONS, stack_name="checkpoints-regulated")
# A name that is no file's is a template with other parameters.
FILES = {"gateway-http-api": "gateway"}
TEMPLATES = ("regulated", "table", "observability", "tenant", "gateway", "gateway-http-api", "gateway-ecs")


def words(output: str) -> dict[str, str]:
    """An output of parameters, as `make` hands them on."""
    return dict(word.split("=", 1) for word in REGULATED.outputs[output].split())


TABLE = render(load("table.yaml"), words("TableParameters"), stack_name="langgraph-checkpoints")


def parameters_of(name: str) -> dict[str, str]:
    """The parameters of a template in a regulated deployment."""
    return {
        "regulated": OPTIONS,
        "table": words("TableParameters"),
        "observability": words("ObservabilityParameters"),
        "tenant": {"Tenant": "acme"} | words("TenantParameters"),
        "gateway": words("ObservabilityParameters") | PACKAGE,
        "gateway-http-api": words("ObservabilityParameters") | PACKAGE | TOKENS,
        "gateway-ecs": words("ObservabilityParameters") | NETWORK,
    }[name]


def key_policy(name: str) -> Node:
    """The statements of a key's policy."""
    return REGULATED.properties(name)["KeyPolicy"]["Statement"]


def test_table_is_encrypted_with_the_key_and_recoverable() -> None:
    properties = TABLE.properties("Table")
    assert properties["SSESpecification"]["KMSMasterKeyId"].endswith("key/checkpoints-regulated-TableKey")
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"] == "35"
    assert TABLE.outputs["TableArn"].endswith(f":table/{words('TableParameters')['TableName']}")


@pytest.mark.parametrize("key", ["TableKey", "RecordsKey"])
def test_keys_rotate_outlive_the_stack_and_lock_nobody_out(key: str) -> None:
    resource, properties = REGULATED.resources[key], REGULATED.properties(key)
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert properties["EnableKeyRotation"] is True
    assert "BypassPolicyLockoutSafetyCheck" not in properties
    [account, *others] = key_policy(key)
    assert account["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
    assert (account["Effect"], account["Action"], account["Resource"]) == ("Allow", "kms:*", "*")
    assert "Condition" not in account
    denials = [each for each in others if each["Effect"] == "Deny"]
    # Grants are what services make of a caller's rights; nothing else is denied to anybody.
    assert [each["Action"] for each in denials] == ["kms:CreateGrant"]
    # What looks at a key's description needs no more; all else is bound to this account or to AWS's own purposes.
    assert {each["Sid"] for each in others if "Condition" not in each} <= {"CloudTrailLooks"}


def test_trail_records_every_read_and_write_of_the_table_and_nothing_else() -> None:
    trail = REGULATED.properties("Trail")
    [selector] = trail["AdvancedEventSelectors"]
    fields = {each["Field"]: each["Equals"] for each in selector["FieldSelectors"]}
    assert fields == {
        "eventCategory": ["Data"],
        "resources.type": ["AWS::DynamoDB::Table"],
        "resources.ARN": [TABLE.outputs["TableArn"]],
    }
    assert trail["IsLogging"] is trail["EnableLogFileValidation"] is True


def test_backup_is_of_the_table_and_goes_where_it_is_to() -> None:
    [rule] = REGULATED.properties("BackupPlan")["BackupPlan"]["BackupPlanRule"]
    assert [each["DestinationBackupVaultArn"] for each in rule["CopyActions"]] == [OPTIONS["CopyVaultArn"]]
    selection = REGULATED.properties("BackupSelection")["BackupSelection"]
    assert selection["Resources"] == [TABLE.outputs["TableArn"]]
    plain = render(TEMPLATE)
    [rule] = plain.properties("BackupPlan")["BackupPlan"]["BackupPlanRule"]
    assert "CopyActions" not in rule


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ("NONE", None),
        ("GOVERNANCE", {"MinRetentionDays": "35"}),
        ("COMPLIANCE", {"MinRetentionDays": "35", "ChangeableForDays": "3"}),
    ],
)
def test_vault_lock(lock: str, expected: Node) -> None:
    vault = render(TEMPLATE, {"VaultLock": lock}).properties("Vault")
    assert vault.get("LockConfiguration") == expected


@pytest.mark.parametrize(
    ("template", "parameters"),
    [
        ("regulated.yaml", {}),
        ("gateway.yaml", PACKAGE),
        ("gateway-ecs.yaml", NETWORK),
        ("observability.yaml", {}),
        ("examples/lambda-agent/template.yaml", {"CodeBucket": "packages", "CodeKey": "key"}),
        (
            "examples/ecs-agent/template.yaml",
            {"Image": "agent:1", "VpcId": "vpc-1", "SubnetIds": "subnet-1", "ClientCidr": "10.0.0.0/16"},
        ),
    ],
)
def test_every_role_has_the_boundary_and_every_log_its_key_and_retention(
    template: str, parameters: dict[str, str]
) -> None:
    given = words("AgentParameters" if template.startswith("examples/") else "ObservabilityParameters")
    own = (
        REGULATED
        if template == "regulated.yaml"
        else render(load(template), given | parameters, exports=TABLE.exports)
    )
    roles, logs = own.of_type("AWS::IAM::Role"), own.of_type("AWS::Logs::LogGroup")
    assert roles
    assert logs
    for role in roles.values():
        assert role["PermissionsBoundary"] == REGULATED.outputs["BoundaryArn"]
    for log in logs.values():
        assert log["RetentionInDays"] == "365"
        assert log["KmsKeyId"].endswith("key/checkpoints-regulated-RecordsKey")


def test_alarms_have_to_notify_somebody() -> None:
    given = {**words("ObservabilityParameters"), "AlarmTopicArn": ""}
    with pytest.raises(StackRefusedError, match="needs AlarmTopicArn"):
        render(load("observability.yaml"), given, exports=TABLE.exports)
    notified = render(load("observability.yaml"), words("ObservabilityParameters"), exports=TABLE.exports)
    for alarm in notified.of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == [REGULATED.outputs["AlarmTopicArn"]]


@pytest.mark.parametrize("policy", ["Agent", "Runner", "Operator", "Reader"])
def test_boundary_lets_through_what_the_policies_allow(policy: str) -> None:
    """Whoever has a policy and the boundary has what both allow, so the boundary may not lack any of it."""
    boundary = REGULATED.properties("Boundary")["PolicyDocument"]
    for statement in TABLE.properties(f"{policy}Policy")["PolicyDocument"]["Statement"]:
        actions, resources = (
            each if isinstance(each, list) else [each]
            for each in (statement["Action"], statement["Resource"])
        )
        plain = {"kms:GenerateDataKey*": "kms:GenerateDataKey", "kms:ReEncrypt*": "kms:ReEncryptTo"}
        for action, resource in product(actions, resources):
            request = Request(plain.get(action, action), resource, {})
            assert is_allowed([boundary], request), (action, resource)


def test_what_is_kept_is_not_kept_when_its_stack_could_not_be_made() -> None:
    """Else the next attempt meets names that are taken, of things with nothing in them."""
    policies = {
        name: each["DeletionPolicy"] for name, each in REGULATED.resources.items() if "DeletionPolicy" in each
    }
    assert policies.keys() == {"TableKey", "RecordsKey", "Vault", "TrailBucket", "TrailLogs"}
    assert set(policies.values()) == {"RetainExceptOnCreate"}


def test_an_existing_trail_stands_in_for_one_of_its_own() -> None:
    stack = render(TEMPLATE, {"ExistingTrail": "organization"})
    own = {name for name in REGULATED.resources if name.startswith("Trail")}
    assert len(own) == 6
    assert REGULATED.resources.keys() - stack.resources.keys() == own
    selector = json.loads(stack.outputs["TrailSelector"])
    [made] = REGULATED.properties("Trail")["AdvancedEventSelectors"]
    assert selector["FieldSelectors"] == made["FieldSelectors"]
    assert "TrailSelector" not in REGULATED.outputs


def test_what_becomes_of_backups_is_told_to_the_topic() -> None:
    rule = REGULATED.properties("FailedBackups")
    kinds = ("Backup", "Copy", "Restore")
    assert rule["EventPattern"]["detail-type"] == [f"{kind} Job State Change" for kind in kinds]
    assert {"FAILED", "ABORTED", "EXPIRED"} <= set(rule["EventPattern"]["detail"]["state"])
    assert [target["Arn"] for target in rule["Targets"]] == [REGULATED.outputs["AlarmTopicArn"]]
    # The topic lets the rule publish, and its key lets EventBridge encrypt.
    statements = REGULATED.properties("AlarmTopicPolicy")["PolicyDocument"]["Statement"]
    allowed = [each for each in statements if each["Effect"] == "Allow"]
    assert {each["Principal"]["Service"] for each in allowed} == {
        "cloudwatch.amazonaws.com",
        "events.amazonaws.com",
    }
    services = [
        each["Principal"]["Service"] for each in key_policy("RecordsKey") if "Service" in each["Principal"]
    ]
    assert ["cloudwatch.amazonaws.com", "events.amazonaws.com"] in services


# What of AWS's own policies is about DynamoDB's backups; the rest is about other services' disks and machines.
OF_BACKUPS = re.compile(r"dynamodb:|kms:|tag:GetResources|backup:(Copy|Describe.*Vault|TagResource)")
# The key of a volume on EC2.
NOT_OURS = {"kms:ReEncryptTo", "kms:ReEncryptFrom", "kms:GenerateDataKeyWithoutPlaintext"}
TABLE_ARN = TABLE.outputs["TableArn"]
RESOURCES = {
    "tables": (TABLE_ARN, f"{TABLE_ARN}-restored", f"{TABLE_ARN.replace('us-east-1', 'us-west-2')}-restored"),
    "backups": (f"{TABLE_ARN}/backup/1", f"{TABLE_ARN.replace('us-east-1', 'us-west-2')}/backup/1"),
    "keys": ("arn:aws:kms:us-east-1:123456789012:key/checkpoints-regulated-RecordsKey", COPY_KEY),
}


@pytest.mark.parametrize(("role", "job"), [("BackupRole", "Backup"), ("RestoreRole", "Restores")])
def test_boundary_lets_through_what_aws_own_policy_of_the_service_role_allows(role: str, job: str) -> None:
    """By the policy as moto has it, which takes it from AWS."""
    [attached] = REGULATED.properties(role)["ManagedPolicyArns"]
    name = f"AWSBackupServiceRolePolicyFor{job}"
    assert attached.endswith(f":policy/service-role/{name}")
    boundary = REGULATED.properties("Boundary")["PolicyDocument"]
    tried = set()
    for statement in json.loads(aws_managed_policies_data)[name]["Document"]["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        for action in filter(OF_BACKUPS.match, actions):
            if action in NOT_OURS and "dynamodb" not in str(statement.get("Condition")):
                continue
            for resource in _resources(action, statement["Resource"], job):
                assert is_allowed([boundary], Request(action, resource, {})), (action, resource)
            tried.add(action)
    assert "dynamodb:StartAwsBackupJob" in tried or "dynamodb:RestoreTableFromAwsBackup" in tried
    assert len(tried) > 8


def _resources(action: str, allowed: Node, job: str) -> tuple[str, ...]:
    """What an action has to be allowed on: a backup is of the table, a restore makes another one."""
    if action.startswith("kms:"):
        return RESOURCES["keys"]
    if action.startswith("backup:"):
        return (OPTIONS["CopyVaultArn"],)
    if "/backup/" in str(allowed):
        return RESOURCES["backups"]
    return RESOURCES["tables"][:1] if job == "Backup" else RESOURCES["tables"][1:]


def test_a_key_without_its_vault_is_refused() -> None:
    with pytest.raises(StackRefusedError, match="is the key of CopyVaultArn"):
        render(TEMPLATE, {"CopyVaultKeyArn": COPY_KEY})


def test_boundary_lets_a_gateway_read_who_may_call() -> None:
    boundary = REGULATED.properties("Boundary")["PolicyDocument"]
    secret = NETWORK["PrincipalsSecretArn"]
    assert is_allowed([boundary], Request("secretsmanager:GetSecretValue", secret, {}))
    assert not is_allowed([boundary], Request("secretsmanager:PutSecretValue", secret, {}))


def test_boundary_allows_no_other_table_and_no_administration() -> None:
    boundary = REGULATED.properties("Boundary")["PolicyDocument"]
    arn = TABLE.outputs["TableArn"]
    assert not is_allowed([boundary], Request("dynamodb:GetItem", f"{arn}-2", {}))
    for action in (
        "dynamodb:DeleteTable",
        "dynamodb:UpdateTable",
        "iam:PutRolePolicy",
        "kms:ScheduleKeyDeletion",
    ):
        assert not is_allowed([boundary], Request(action, arn, {}))
