"""`access.yaml`: who may what, and that nobody becomes an administrator by it.

CloudFormation's role allows what the templates need, the deployer's policy what our programs ask, and that of whoever
is on call the commands of the documents; none allows more.

AWS publishes which actions CloudFormation needs to create, read, update and delete a resource of each type, and
cfn-lint brings that along. A template that leaves properties out needs less. Which actions belong to such a property is
written here, and a test checks that no template has the property.
"""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from tests.infra.authorization import EVERYTHING, Request, is_allowed, named_in
from tests.infra.rendering import ACCOUNT_ID, INFRA, REGION, Node, load, render
from tests.infra.stacks import TABLE_STACK, stack_of

# What IAM takes as one managed policy, without white space.
CHARACTERS_MAX = 6_144
ACCESS = "access.yaml"
TEMPLATES = sorted({str(path.relative_to(INFRA)) for path in INFRA.rglob("*.yaml")} - {ACCESS})
PREFIX = "langgraph-checkpoints"
STACK = render(load(ACCESS), stack_name="langgraph-access")
POLICIES: dict[str, Node] = {
    name: policy["PolicyDocument"] for name, policy in STACK.of_type("AWS::IAM::ManagedPolicy").items()
}
BOUNDARY, DEPLOYER, ONCALL = (POLICIES[each] for each in ("Boundary", "DeployerPolicy", "OncallPolicy"))
SERVICE = [POLICIES["StacksPolicy"], POLICIES["ServicesPolicy"]]

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
        "Replicas": ("dynamodb:*TableReplica", "dynamodb:*Item", "dynamodb:Query", "dynamodb:Scan"),
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
    # No stack may take a boundary from a role.
    "AWS::IAM::Role": ("iam:DeleteRolePermissionsBoundary",),
}

# What the schemas name and IAM does not know: tags of an API are put and deleted as the rest of it.
NO_ACTIONS = ("apigateway:TagResource", "apigateway:UntagResource")

# What our own programs ask, whose tests compare: the AWS CLI for `make`, then preflight and smoke.
CLI = (
    "cloudformation:CreateChangeSet cloudformation:DeleteChangeSet cloudformation:DeleteStack"
    " cloudformation:DescribeChangeSet cloudformation:DescribeStackEvents cloudformation:DescribeStackResource"
    " cloudformation:DescribeStacks cloudformation:ExecuteChangeSet cloudformation:GetTemplateSummary"
    " cloudformation:ListImports cloudformation:UpdateTerminationProtection iam:ListEntitiesForPolicy iam:PassRole"
    " s3:GetObject s3:PutObject"
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
# What the commands of the documents ask beside these: a sample agent is tried, and a stack compared.
DOCUMENTED = "cloudformation:DetectStackDrift cloudformation:DetectStackResourceDrift lambda:InvokeFunction"
# What API Gateway asks of whoever switches its access log on; the page on logging HTTP APIs lists it.
API_LOGS = (
    "logs:CreateLogDelivery logs:DeleteLogDelivery logs:DescribeLogGroups logs:DescribeResourcePolicies"
    " logs:GetLogDelivery logs:ListLogDeliveries logs:PutResourcePolicy logs:UpdateLogDelivery"
)


def in_account(service: str, name: str, region: str = REGION) -> str:
    """The ARN of something."""
    return f"arn:aws:{service}:{region}:{ACCOUNT_ID}:{name}"


def in_iam(name: str) -> str:
    """The ARN of a role or a policy."""
    return in_account("iam", name, region="")


ROLE = in_iam(f"role/{PREFIX}-gateway-Role-1")
SMOKE_ROLE = in_iam(f"role/{PREFIX}-smoke-1-agent")
OWN_POLICY = in_iam(f"policy/{PREFIX}-AgentPolicy-1")
SERVICE_ROLE, BOUNDARY_ARN = STACK.outputs["ServiceRoleArn"], STACK.outputs["BoundaryArn"]
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
# What the things of a stack are called, by service, as CloudFormation names them.
NAMED = {
    "apigateway": [
        f"arn:aws:apigateway:{REGION}::/{each}"
        for each in ("apis", "apis/1/routes", "domainnames", "domainnames/gateway.example.com/apimappings")
    ],
    "cloudformation": [in_account("cloudformation", f"stack/{PREFIX}-gateway/1")],
    "cloudwatch": [
        in_account("cloudwatch", f"alarm:{PREFIX}-observability-Errors-1"),
        in_account("cloudwatch", "dashboard/Dashboard-1", region=""),
    ],
    "dynamodb": [in_account("dynamodb", f"table/{PREFIX}{each}") for each in ("", "-2", "-smoke-1-suite")],
    "ecs": [in_account("ecs", f"service/{PREFIX}-gateway-ecs-Cluster-1/{PREFIX}-gateway-ecs-Service-1")],
    "iam": [ROLE, OWN_POLICY, SMOKE_ROLE, SERVICE_ROLE],
    "lambda": [in_account("lambda", f"function:{PREFIX}-gateway-Gateway-1")],
    "logs": [in_account("logs", f"log-group:{PREFIX}-gateway-Log-1")],
    "s3": ["arn:aws:s3:::packages/langgraph-dynamodb/1.zip", "arn:aws:s3:::packages"],
    "secretsmanager": [in_account("secretsmanager", "secret:AuditKey-1")],
    "servicequotas": [in_account("servicequotas", "dynamodb/L-1")],
    "sts": [SMOKE_ROLE],
}
SERVICES = ("contributorinsights.dynamodb", "ecs", "elasticloadbalancing", "ecs.application-autoscaling")
LINKED = [in_iam(f"role/aws-service-role/{each}.amazonaws.com/AWSServiceRole") for each in SERVICES]
CONTEXTS = [
    {"iam:PermissionsBoundary": [BOUNDARY_ARN], "iam:PassedToService": ["lambda.amazonaws.com"]},
    {"kms:ViaService": [f"dynamodb.{REGION}.amazonaws.com"]},
    {"iam:PassedToService": ["cloudformation.amazonaws.com"]},
    {"s3:prefix": ["langgraph-dynamodb/"]},
]


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
    unused += [*BY_OTHERS.get(resource_type, ()), *NO_ACTIONS]
    actions = {
        each for kind, handler in handlers.items() if kind != "list" for each in handler["permissions"]
    }
    yield from (each for each in actions if not any(fnmatchcase(each, pattern) for pattern in unused))


def allows(policies: list[Node], action: str, but: str = "") -> bool:
    """Whether an action is allowed on something of ours, but for one thing."""
    resources = {*NAMED.get(action.split(":")[0], ()), *LINKED, "*"} - {but}
    return any(
        is_allowed(policies, Request(action, resource, context))
        for resource in resources
        for context in CONTEXTS
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_service_role_may_make_what_the_template_has(template: str) -> None:
    missing = {each for kind in types_of(template) for each in needed(kind) if not allows(SERVICE, each)}
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


@pytest.mark.parametrize("programs", [CLI, PREFLIGHT, SMOKE, DOCUMENTED])
def test_the_deployer_may_run_our_programs(programs: str) -> None:
    # Everybody may ask who they are.
    asked = set(programs.split()) - {"sts:GetCallerIdentity"}
    assert not {each for each in asked if not allows([DEPLOYER], each)}


# Which actions a command of the AWS CLI asks, where it is not the one that is called as the command is.
ACTIONS = {
    "cloudformation deploy": CLI.partition(" iam:")[0],
    "cloudformation wait": "cloudformation:DescribeStacks",
    "dynamodb wait": "dynamodb:DescribeTable",
    "ecr get-login-password": "ecr:GetAuthorizationToken",
    "lambda invoke": "lambda:InvokeFunction",
    "s3 ls": "s3:ListBucket",
    "s3 mb": "s3:CreateBucket",
}
PAGES = [INFRA.parent / "README.md", INFRA / "README.md", *(INFRA.parent / "docs").rglob("*.md")]
DEPLOY_PAGE = (INFRA.parent / "docs" / "deploy.md").read_text(encoding="utf-8")


def commands_of(text: str) -> set[str]:
    """The kinds of commands of the AWS CLI in a text."""
    return {" ".join(each) for each in re.findall(r"(?<![\w-])aws ([a-z0-9-]+) ([a-z][a-z-]+)", text)}


def actions_of_command(command: str) -> set[str]:
    """The actions that a command asks for."""
    if command in ACTIONS:
        return set(ACTIONS[command].split())
    service, operation = command.split()
    return {f"{service.replace('-', '')}:{operation.title().replace('-', '')}"}


def may_run(policies: list[Node], command: str) -> bool:
    """Whether somebody may run a command on something of ours. No document names a role of `make smoke`."""
    return all(allows(policies, each, SMOKE_ROLE) for each in actions_of_command(command))


def test_each_command_of_the_documents_is_somebodys() -> None:
    """The deployer's, that of whoever is on call, or one that the page says is an administrator's."""
    section = DEPLOY_PAGE.split("### What is an administrator's\n")[1].split("\n## ")[0]
    administrators = {f"{service} {name}" for service, name in re.findall(r"`([\w-]+) ([a-z-]+)`", section)}
    named = set().union(*(commands_of(each.read_text(encoding="utf-8")) for each in PAGES)) - {"sso login"}
    assert len(named) > 40
    others = {each for each in named if not may_run([DEPLOYER], each) and not may_run([ONCALL], each)}
    assert others == administrators


def test_whoever_is_on_call_may_run_the_runbook() -> None:
    page = (INFRA.parent / "docs" / "runbook.md").read_text(encoding="utf-8")
    denied = {each for each in commands_of(page) if not may_run([ONCALL], each)}
    # Who owns the key decides about the key.
    assert denied == {"kms cancel-key-deletion", "kms enable-key", "sso login"}
    # What was restored may be deleted again, and not the table.
    tables = (PREFIX, f"{PREFIX}-at-nine")
    deletions = [
        Request("dynamodb:DeleteTable", in_account("dynamodb", f"table/{each}"), {}) for each in tables
    ]
    assert [is_allowed([ONCALL], each) for each in deletions] == [False, True]


@pytest.mark.parametrize("name", POLICIES)
def test_no_action_is_allowed_that_neither_a_template_nor_a_program_needs(name: str) -> None:
    wanted = {each for template in TEMPLATES for kind in types_of(template) for each in needed(kind)}
    wanted |= {
        each for programs in (CLI, PREFLIGHT, SMOKE, DOCUMENTED, API_LOGS) for each in programs.split()
    }
    pages = " ".join(each.read_text(encoding="utf-8") for each in PAGES)
    wanted |= {action for command in commands_of(pages) for action in actions_of_command(command)}
    # What the roles that are bounded may do is in the templates, and in the policy of AWS for tasks.
    wanted |= {action for action in named_in(BOUNDARY) if name == "Boundary"}
    allowed = named_in(POLICIES[name])
    assert not {each for each in allowed if not any(fnmatchcase(action, each) for action in wanted)}
    # Whatever a star stands for only looks.
    assert name == "Boundary" or all(
        re.fullmatch(r"[\w-]+:((Describe|Get|List)\*|\w+)", each) for each in allowed
    )


# What the roles of the templates have, which the boundary must not take from them.
BOUNDED = ["gateway.yaml", "ecs.yaml", "examples/lambda-agent/template.yaml"]


@pytest.mark.parametrize("template", BOUNDED)
def test_the_boundary_leaves_roles_what_they_are_for(template: str) -> None:
    documents = [
        *(each["PolicyDocument"] for each in stack_of(template).of_type("AWS::IAM::ManagedPolicy").values()),
        *(TABLE_STACK.properties(f"{each}Policy")["PolicyDocument"] for each in ("Agent", "Operator")),
    ]
    contexts = [{}, {"kms:ViaService": [f"secretsmanager.{REGION}.amazonaws.com"]}]
    for statement in (each for document in documents for each in document["Statement"]):
        for action in named_in({"Statement": [statement]}):
            resources = [
                each.replace("/beside-", f"/{PREFIX}-") for each in NAMED.get(action.split(":")[0], ["*"])
            ]
            assert any(
                is_allowed([BOUNDARY], Request(action, each, context))
                for each in resources
                for context in contexts
            ), action


Ways = list[tuple[str, str, dict[str, list[str]]]]
# Each would make the deployer an administrator, or somebody else.
BY_ONESELF: Ways = [
    ("iam:CreatePolicy", OWN_POLICY, {}),
    ("iam:CreatePolicyVersion", OWN_POLICY, {}),
    ("iam:SetDefaultPolicyVersion", OWN_POLICY, {}),
    ("iam:AttachUserPolicy", in_iam("user/ada"), {"iam:PolicyARN": [ADMINISTRATOR]}),
    *(
        (f"iam:{action}", role, context)
        for action in ("CreateRole", "AttachRolePolicy", "PutRolePolicy", "PutRolePermissionsBoundary")
        for role in (ROLE, SERVICE_ROLE, SMOKE_ROLE, in_iam("role/ada"))
        for context in ({}, {"iam:PermissionsBoundary": [OWN_POLICY]})
    ),
    *(
        (f"iam:{each}", SMOKE_ROLE, {})
        for each in ("DeleteRolePermissionsBoundary", "UpdateAssumeRolePolicy")
    ),
    *(("iam:UpdateAssumeRolePolicy", each, {}) for each in (ROLE, SERVICE_ROLE)),
    *(("sts:AssumeRole", each, {}) for each in (ROLE, SERVICE_ROLE, in_iam("role/admin"))),
    ("iam:PassRole", SERVICE_ROLE, {"iam:PassedToService": ["lambda.amazonaws.com"]}),
    ("iam:PassRole", ROLE, {"iam:PassedToService": ["lambda.amazonaws.com"]}),
    ("iam:PassRole", in_iam("role/admin"), {"iam:PassedToService": ["cloudformation.amazonaws.com"]}),
    ("lambda:UpdateFunctionCode", NAMED["lambda"][0], {}),
]
# The same with a template of the deployer's own, which CloudFormation carries out under its role.
BY_A_TEMPLATE: Ways = [
    *(
        (f"iam:{action}", role, context)
        for action in ("CreateRole", "AttachRolePolicy", "PutRolePolicy", "PutRolePermissionsBoundary")
        for role in (ROLE, SMOKE_ROLE)
        for context in ({}, {"iam:PermissionsBoundary": [OWN_POLICY]})
    ),
    ("iam:DeleteRolePermissionsBoundary", ROLE, {}),
    ("iam:CreateUser", in_iam(f"user/{PREFIX}"), {}),
    ("iam:PassRole", in_iam("role/admin"), {"iam:PassedToService": ["lambda.amazonaws.com"]}),
    ("iam:CreatePolicyVersion", in_iam("policy/payroll"), {}),
    ("dynamodb:DeleteTable", in_account("dynamodb", "table/payroll"), {}),
    ("lambda:UpdateFunctionCode", in_account("lambda", "function:payroll"), {}),
    ("secretsmanager:GetSecretValue", in_account("secretsmanager", "secret:payroll"), {}),
]


@pytest.mark.parametrize(
    ("policies", "ways"), [([DEPLOYER], BY_ONESELF), ([ONCALL], BY_ONESELF), (SERVICE, BY_A_TEMPLATE)]
)
def test_no_way_leads_to_an_administrator(policies: list[Node], ways: Ways) -> None:
    open_ = [each for each in ways if is_allowed(policies, Request(*each))]
    # On call one may not even make the roles of smoke.
    assert open_ == []


@pytest.mark.parametrize("name", ["langgraph-access", PREFIX, f"{PREFIX}-access"])
def test_no_template_changes_what_bounds_it(name: str) -> None:
    """Even where the administrator gives this stack a name of the others'."""
    policies = render(load(ACCESS), stack_name=name).of_type("AWS::IAM::ManagedPolicy")
    service = [policies[each]["PolicyDocument"] for each in ("StacksPolicy", "ServicesPolicy")]
    for context in CONTEXTS:
        for action in ("CreatePolicyVersion", "DeletePolicy"):
            for each in ("Boundary", "DeployerPolicy", "StacksPolicy"):
                arn = in_iam(f"policy/{name}-{each}-1")
                assert not is_allowed(service, Request(f"iam:{action}", arn, context))
        for action in ("UpdateAssumeRolePolicy", "AttachRolePolicy", "PutRolePolicy"):
            arn = in_iam(f"role/{name}-ServiceRole-1")
            assert not is_allowed(service, Request(f"iam:{action}", arn, context))


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("iam:CreateUser", "*"),
        ("iam:CreatePolicyVersion", OWN_POLICY),
        ("sts:AssumeRole", in_iam("role/admin")),
        ("dynamodb:GetItem", in_account("dynamodb", "table/payroll")),
        ("dynamodb:DeleteTable", in_account("dynamodb", f"table/{PREFIX}")),
        ("secretsmanager:GetSecretValue", in_account("secretsmanager", "secret:payroll-1")),
        ("kms:Decrypt", "*"),
        ("s3:GetObject", "arn:aws:s3:::payroll/1"),
    ],
)
def test_a_role_with_every_right_has_those_of_the_boundary_only(action: str, resource: str) -> None:
    """CreatePolicy with `*`, a role within the boundary that trusts oneself, AttachRolePolicy, AssumeRole."""
    bounded = {"iam:PermissionsBoundary": [BOUNDARY_ARN]}
    for way in ("iam:CreateRole", "iam:AttachRolePolicy"):
        assert is_allowed([DEPLOYER], Request(way, SMOKE_ROLE, bounded))
    assert is_allowed([DEPLOYER], Request("sts:AssumeRole", SMOKE_ROLE, {}))
    request = Request(action, resource, {})
    assert is_allowed([EVERYTHING], request)
    assert not is_allowed([BOUNDARY], request)


@pytest.mark.parametrize("name", POLICIES)
def test_the_policy_fits_into_iam(name: str) -> None:
    assert len(re.sub(r"\s", "", json.dumps(POLICIES[name]))) <= CHARACTERS_MAX
