"""The deployer's policies allow what CloudFormation needs for the templates, what our programs ask, and no more.

AWS publishes which actions CloudFormation needs to create, read, update and delete a resource of each type, and
cfn-lint brings that along. A template that leaves properties out needs less. Which actions belong to such a property is
written here, and a test checks that no template has the property.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from tests.infra.authorization import Request, is_allowed
from tests.infra.rendering import ACCOUNT_ID, INFRA, REGION, Node, load

FILES = ("deployer.json", "deployer-services.json")
# What IAM takes as one managed policy, without white space.
CHARACTERS_MAX = 6_144
# What the first file is for; all other templates need the second too.
FIRST = ("table.yaml", "observability.yaml", "saver-metrics.yaml", "tenant.yaml")
TEMPLATES = sorted(str(path.relative_to(INFRA)) for path in INFRA.rglob("*.yaml"))
PREFIX = "langgraph-checkpoints"

# By type: a property that no template has, and the actions that CloudFormation needs for nothing else.
WITHOUT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "AWS::ApiGatewayV2::Api": {"BodyS3Location": ("s3:*",)},
    "AWS::ApiGatewayV2::Authorizer": {"AuthorizerCredentialsArn": ("iam:PassRole",)},
    "AWS::ApiGatewayV2::Integration": {"CredentialsArn": ("iam:PassRole",)},
    "AWS::ApplicationAutoScaling::ScalableTarget": {
        "ScheduledActions": ("application-autoscaling:*ScheduledAction*",),
        "RoleARN": ("iam:PassRole",),
    },
    "AWS::DynamoDB::Table": {
        "ImportSourceSpecification": ("dynamodb:*Import*", "s3:*", "logs:*"),
        "KinesisStreamSpecification": ("dynamodb:??*ableKinesis*", "dynamodb:UpdateKinesis*", "kinesis:*"),
        "ResourcePolicy": ("dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"),
        "Replicas": ("dynamodb:*TableReplica",),
    },
    "AWS::EC2::VPCEndpoint": {"ServiceNetworkArn": ("vpc-lattice:*", "vpce:*")},
    "AWS::ECS::Cluster": {
        "CapacityProviders": ("ecs:PutClusterCapacityProviders",),
        "Configuration": ("kms:*", "ecs:PutAccountSetting*"),
    },
    "AWS::ElasticLoadBalancingV2::Listener": {"ListenerCertificates": ("cognito-idp:*",)},
    "AWS::ElasticLoadBalancingV2::ListenerRule": {"ListenerCertificates": ("cognito-idp:*",)},
    "AWS::ElasticLoadBalancingV2::LoadBalancer": {
        "MinimumLoadBalancerCapacity": ("elasticloadbalancing:ModifyCapacityReservation",),
        "Ipv4IpamPoolId": ("elasticloadbalancing:ModifyIpPools",),
        "IpAddressType": ("elasticloadbalancing:SetIpAddressType",),
    },
    "AWS::ElasticLoadBalancingV2::TargetGroup": {
        "Targets": ("elasticloadbalancing:RegisterTargets", "elasticloadbalancing:DeregisterTargets")
    },
    "AWS::IAM::ManagedPolicy": {
        "Roles": ("iam:*tachRole*",),
        "Users": ("iam:*User*",),
        "Groups": ("iam:*Group*",),
    },
    "AWS::Lambda::Function": {
        "VpcConfig": ("ec2:*",),
        "FileSystemConfigs": ("elasticfilesystem:*", "s3files:*"),
        "KmsKeyArn": ("kms:*",),
        "CodeSigningConfigArn": ("lambda:*FunctionCodeSigningConfig",),
        "RuntimeManagementConfig": ("lambda:PutRuntime*", "lambda:AssociateRuntimeAlias"),
        "RecursiveLoop": ("lambda:PutFunctionRecursionConfig",),
        "Layers": ("lambda:GetLayerVersion",),
        "CapacityProviderConfig": ("lambda:PassCapacityProvider", "lambda:PutFunctionScalingConfig"),
        "PublishToLatestPublished": ("lambda:PublishVersion",),
    },
    "AWS::Logs::LogGroup": {
        "DataProtectionPolicy": ("logs:PutData*", "logs:DeleteData*", "firehose:*", "s3:*"),
        "FieldIndexPolicies": ("logs:PutIndexPolicy", "logs:DeleteIndexPolicy"),
        "ResourcePolicyDocument": ("logs:DeleteResourcePolicy",),
        "DeletionProtectionEnabled": ("logs:PutLogGroupDeletionProtection",),
        "BearerTokenAuthenticationEnabled": ("logs:PutBearer*",),
    },
    "AWS::SecretsManager::Secret": {"ReplicaRegions": ("secretsmanager:*Regions*",)},
}
# A firewall is associated with a load balancer here, never with what other services have.
FIREWALLED = (
    "wafv2:*PermissionPolicy",
    "elasticloadbalancing:*WebACLAssociation",
    "elasticloadbalancing:GetLoad*",
)
OTHERS = (
    "amplify:*",
    "apigateway:SetWebACL",
    "apprunner:*",
    "appsync:*",
    "bedrock*",
    "cognito-idp:*",
    "ec2:*",
)
# Autoscaling of ECS sets its alarms by its own role; that of Lambda has no target here, nor has a load balancer a pool.
BY_OTHERS = {
    "AWS::ApplicationAutoScaling::ScalableTarget": ("lambda:*", "cloudwatch:*"),
    "AWS::ApplicationAutoScaling::ScalingPolicy": ("cloudwatch:*",),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": ("ec2:DescribeIpamPools",),
    "AWS::WAFv2::WebACLAssociation": (*FIREWALLED, *OTHERS),
    "AWS::EC2::VPCEndpoint": ("vpce:*",),
}

# What our own programs ask: the AWS CLI for `make`, then preflight and smoke, whose tests compare.
CLI = (
    "cloudformation:CreateChangeSet cloudformation:DeleteChangeSet cloudformation:DeleteStack"
    " cloudformation:DescribeChangeSet cloudformation:DescribeStackEvents cloudformation:DescribeStackResource"
    " cloudformation:DescribeStacks cloudformation:ExecuteChangeSet cloudformation:GetTemplateSummary"
    " cloudformation:ListImports cloudformation:UpdateTerminationProtection s3:PutObject"
)
PREFLIGHT = (
    "cloudformation:DescribeStacks dynamodb:DescribeTable ec2:DescribeVpcEndpoints iam:GetRole"
    " iam:SimulatePrincipalPolicy lambda:GetAccountSettings sts:GetCallerIdentity"
)
SMOKE = (
    "cloudformation:DescribeStacks cloudwatch:DescribeAlarmHistory cloudwatch:DescribeAlarms cloudwatch:SetAlarmState"
    " dynamodb:BatchGetItem dynamodb:BatchWriteItem dynamodb:CreateTable dynamodb:DeleteItem dynamodb:DeleteTable"
    " dynamodb:DescribeContinuousBackups dynamodb:DescribeTable dynamodb:DescribeTimeToLive dynamodb:GetItem"
    " dynamodb:PutItem dynamodb:Query dynamodb:RestoreTableToPointInTime dynamodb:Scan dynamodb:UpdateItem"
    " dynamodb:UpdateTimeToLive iam:AttachRolePolicy iam:CreateRole iam:DeleteRole iam:DetachRolePolicy"
    " kms:DescribeKey sts:AssumeRole sts:GetCallerIdentity"
)
# What API Gateway asks of whoever switches its access log on; the page on logging HTTP APIs lists it.
API_LOGS = (
    "logs:CreateLogDelivery logs:DeleteLogDelivery logs:DescribeLogGroups logs:DescribeResourcePolicies"
    " logs:GetLogDelivery logs:ListLogDeliveries logs:PutResourcePolicy logs:UpdateLogDelivery"
)
OURS = {action for each in (CLI, PREFLIGHT, SMOKE, API_LOGS) for action in each.split()}

ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/{PREFIX}-gateway-Role-1"
OWN_POLICY = f"arn:aws:iam::{ACCOUNT_ID}:policy/{PREFIX}-AgentPolicy-1"
# What the things of a stack are called, by service, as CloudFormation names them.
NAMED = {
    "apigateway": [f"arn:aws:apigateway:{REGION}::/apis", f"arn:aws:apigateway:{REGION}::/apis/1/routes"],
    "cloudformation": [f"arn:aws:cloudformation:{REGION}:{ACCOUNT_ID}:stack/{PREFIX}-gateway/1"],
    "cloudwatch": [
        f"arn:aws:cloudwatch:{REGION}:{ACCOUNT_ID}:alarm:{PREFIX}-observability-Errors-1",
        f"arn:aws:cloudwatch::{ACCOUNT_ID}:dashboard/Dashboard-1",
    ],
    "dynamodb": [f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{PREFIX}"],
    "ecs": [
        f"arn:aws:ecs:{REGION}:{ACCOUNT_ID}:service/{PREFIX}-gateway-ecs-Cluster-1/{PREFIX}-gateway-ecs-Service-1"
    ],
    "iam": [ROLE, OWN_POLICY, f"arn:aws:iam::{ACCOUNT_ID}:role/{PREFIX}-smoke-1-agent"],
    "lambda": [f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{PREFIX}-gateway-Gateway-1"],
    "logs": [f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:{PREFIX}-gateway-Log-1"],
    "s3": ["arn:aws:s3:::packages/langgraph-dynamodb/1.zip"],
    "secretsmanager": [f"arn:aws:secretsmanager:{REGION}:{ACCOUNT_ID}:secret:AuditKey-1"],
    "sts": [f"arn:aws:iam::{ACCOUNT_ID}:role/{PREFIX}-smoke-1-agent"],
}
LINKED = "arn:aws:iam::{}:role/aws-service-role/{}/AWSServiceRole"
LINKED_SERVICES = (
    "contributorinsights.dynamodb",
    "ecs",
    "elasticloadbalancing",
    "ecs.application-autoscaling",
)
CONTEXTS = [
    {"iam:PolicyARN": [OWN_POLICY], "iam:PassedToService": ["lambda.amazonaws.com"]},
    {"kms:ViaService": [f"dynamodb.{REGION}.amazonaws.com"]},
]


def documents(*files: str) -> list[Node]:
    """The policies."""
    return [json.loads((INFRA / file).read_text(encoding="utf-8")) for file in files]


def types_of(template: str) -> dict[str, set[str]]:
    """The types of a template's resources, with the properties that it gives them."""
    found: dict[str, set[str]] = {}
    for resource in load(template)["Resources"].values():
        found.setdefault(resource["Type"], set()).update(resource.get("Properties", {}))
    return found


def needed(resource_type: str) -> Iterator[str]:
    """The actions that CloudFormation needs for a type, but for those of properties that no template has."""
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource_type).schema["handlers"]
    unused = [each for actions in WITHOUT.get(resource_type, {}).values() for each in actions]
    unused += BY_OTHERS.get(resource_type, ())
    actions = {
        each for kind, handler in handlers.items() if kind != "list" for each in handler["permissions"]
    }
    yield from (each for each in actions if not any(fnmatchcase(each, pattern) for pattern in unused))


def allows(policies: list[Node], action: str) -> bool:
    """Whether an action is allowed on something of ours."""
    service = action.split(":")[0]
    linked = [LINKED.format(ACCOUNT_ID, f"{each}.amazonaws.com") for each in LINKED_SERVICES]
    resources = [*NAMED.get(service, ()), *linked, "*"]
    return any(
        is_allowed(policies, Request(action, resource, context))
        for resource in resources
        for context in CONTEXTS
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_whoever_has_the_policies_may_deploy_the_template(template: str) -> None:
    policies = documents(*FILES[: 1 if template in FIRST else 2])
    missing = {each for kind in types_of(template) for each in needed(kind) if not allows(policies, each)}
    assert not missing


def test_the_properties_that_no_actions_are_allowed_for_are_in_no_template() -> None:
    given: dict[str, set[str]] = {}
    for template in TEMPLATES:
        for kind, properties in types_of(template).items():
            given.setdefault(kind, set()).update(properties)
    assert WITHOUT.keys() | BY_OTHERS.keys() <= given.keys()
    assert not {
        kind: given[kind] & WITHOUT[kind].keys() for kind in WITHOUT if given[kind] & WITHOUT[kind].keys()
    }


@pytest.mark.parametrize("programs", [CLI.replace("s3:PutObject", ""), PREFLIGHT, SMOKE])
def test_the_first_policy_is_enough_for_our_programs(programs: str) -> None:
    # Everybody may ask who they are.
    asked = set(programs.split()) - {"sts:GetCallerIdentity"}
    assert not {each for each in asked if not allows(documents(FILES[0]), each)}


@pytest.mark.parametrize("file", FILES)
def test_no_action_is_allowed_that_neither_a_template_nor_a_program_needs(file: str) -> None:
    wanted = OURS | {each for template in TEMPLATES for kind in types_of(template) for each in needed(kind)}
    [document] = documents(file)
    named = {action for statement in document["Statement"] for action in statement["Action"]}
    assert not {each for each in named if not any(fnmatchcase(action, each) for action in wanted)}
    # Whatever a star stands for only looks.
    assert all(re.fullmatch(r"[\w-]+:((Describe|Get|List)\*|\w+)", each) for each in named)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("cloudformation:DeleteStack", f"arn:aws:cloudformation:{REGION}:{ACCOUNT_ID}:stack/payroll/1"),
        ("dynamodb:DeleteTable", f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/payroll"),
        ("dynamodb:GetItem", f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/payroll"),
        ("iam:CreatePolicyVersion", f"arn:aws:iam::{ACCOUNT_ID}:policy/payroll"),
        ("iam:PutRolePolicy", f"arn:aws:iam::{ACCOUNT_ID}:role/admin"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT_ID}:role/admin"),
        ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT_ID}:role/admin"),
        ("lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:payroll"),
        ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT_ID}:secret:payroll"),
    ],
)
def test_what_belongs_to_others_is_out_of_reach(action: str, resource: str) -> None:
    policies = documents(*FILES)
    assert allows(policies, action)
    assert not any(is_allowed(policies, Request(action, resource, context)) for context in CONTEXTS)


def test_a_role_gets_no_policy_of_others() -> None:
    administrator = {"iam:PolicyARN": ["arn:aws:iam::aws:policy/AdministratorAccess"]}
    for resource in NAMED["iam"]:
        assert not is_allowed(documents(*FILES), Request("iam:AttachRolePolicy", resource, administrator))


@pytest.mark.parametrize("file", FILES)
def test_the_policy_fits_into_iam(file: str) -> None:
    assert len(re.sub(r"\s", "", (INFRA / file).read_text(encoding="utf-8"))) <= CHARACTERS_MAX
