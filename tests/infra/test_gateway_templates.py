"""`infra/gateway.yaml` and `infra/gateway-ecs.yaml`: who gets in, what the service may do, and what is watched."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase

import pytest

from langgraph.checkpoint.dynamodb.config.dynamodb import DynamoDBOptions
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS, LABEL_ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.settings import GatewayOptions
from tests.infra.authorization import Request, is_allowed
from tests.infra.rendering import Node, Stack, StackRefusedError, load, render

TABLE_STACK = render(load("table.yaml"))
LAMBDA = load("gateway.yaml")
ECS = load("gateway-ecs.yaml")
WHO = json.dumps({"iam": {"agents": {"arns": ["arn:aws:iam::210987654321:role/agents"], "tenant": "acme"}}})
PACKAGE = {"CodeBucket": "packages", "CodeKey": "key", "Principals": WHO}
TOKENS = {"Entrance": "HTTP_API", "JwtIssuer": "https://issuer.example", "JwtAudiences": "gateway,agents"}
PRINCIPALS_ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:principals-a1b2c3"
NETWORK = {
    "PrincipalsSecretArn": PRINCIPALS_ARN,
    "ClientCidr": "10.0.0.0/16",
    "VpcId": "vpc-1",
    "LoadBalancerSubnetIds": "subnet-1,subnet-2",
    "TaskSubnetIds": "subnet-3,subnet-4",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1",
    "Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/gateway:1",
    "AccessLogBucket": "access-logs",
    "WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:regional/webacl/gateway/1",
}
CLIENT = "arn:aws:iam::210987654321:role/agents"
READER_ARN = TABLE_STACK.outputs["ReaderPolicyArn"]
ALL_ENDPOINTS = (*ENDPOINTS, *LABEL_ENDPOINTS)
TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:oncall"

# Under which dimensions AWS publishes a metric. An alarm on any others never gets data and never goes off.
DIMENSIONS = {
    ("AWS/Lambda", "Duration"): ("FunctionName",),
    ("AWS/Lambda", "Errors"): ("FunctionName",),
    ("AWS/Lambda", "Throttles"): ("FunctionName",),
    ("AWS/Lambda", "Url4xxCount"): ("FunctionName",),
    ("AWS/Lambda", "Url5xxCount"): ("FunctionName",),
    ("AWS/ApiGateway", "4xx"): ("ApiId",),
    ("AWS/ApiGateway", "5xx"): ("ApiId",),
    ("AWS/ApplicationELB", "HTTPCode_ELB_5XX_Count"): ("LoadBalancer",),
    ("AWS/ApplicationELB", "HTTPCode_Target_4XX_Count"): ("LoadBalancer",),
    ("AWS/ApplicationELB", "HTTPCode_Target_5XX_Count"): ("LoadBalancer",),
    ("AWS/ApplicationELB", "TargetResponseTime"): ("LoadBalancer",),
    ("AWS/ApplicationELB", "HealthyHostCount"): ("TargetGroup", "LoadBalancer"),
    ("AWS/ECS", "MemoryUtilization"): ("ClusterName", "ServiceName"),
}


def on_lambda(**parameters: str) -> Stack:
    """The stack on Lambda."""
    given = {"TableStackName": "checkpoints", **PACKAGE, **parameters}
    return render(LAMBDA, given, stack_name="gateway", exports=TABLE_STACK.exports)


def on_ecs(**parameters: str) -> Stack:
    """The stack on ECS."""
    given = {"TableStackName": "checkpoints", **NETWORK, **parameters}
    return render(ECS, given, stack_name="gateway", exports=TABLE_STACK.exports)


STACKS = {"function URL": on_lambda(), "HTTP API": on_lambda(**TOKENS), "ECS": on_ecs()}


def role_of_the_service(stack: Stack) -> Node:
    """The role under which the service itself runs."""
    return stack.properties("TaskRole" if "TaskRole" in stack.resources else "GatewayRole")


@pytest.mark.parametrize("name", STACKS)
def test_the_service_has_the_agents_policy_and_nothing_more_of_the_table(name: str) -> None:
    stack = STACKS[name]
    own = {f"arn:aws:iam::123456789012:policy/gateway-{each}" for each in ("LogPolicy",)}
    given = set(role_of_the_service(stack)["ManagedPolicyArns"])
    assert given - own == {TABLE_STACK.outputs["AgentPolicyArn"]}
    policies = [role_of_the_service(stack).get("Policies"), stack.of_type("AWS::IAM::ManagedPolicy")]
    assert "dynamodb:" not in str(policies)


@pytest.mark.parametrize("make", [on_lambda, on_ecs])
def test_another_policy_of_the_table_stands_in_for_the_agents(make: Node) -> None:
    given = role_of_the_service(make(TablePolicyArn=READER_ARN))["ManagedPolicyArns"]
    assert READER_ARN in given
    assert TABLE_STACK.outputs["AgentPolicyArn"] not in given


def variables_of(stack: Stack) -> dict[str, str]:
    """The environment of the service, without its secrets."""
    if "Gateway" in stack.resources:
        found: dict[str, str] = stack.properties("Gateway")["Environment"]["Variables"]
        return found
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    return {each["Name"]: each["Value"] for each in container["Environment"]}


@pytest.mark.parametrize("name", STACKS)
def test_every_variable_is_one_that_the_service_reads(name: str) -> None:
    """Each parameter that sets one is given here."""
    everything = {"TtlSeconds": "3600", "OnEvent": "langgraph.checkpoint.dynamodb.observe:EmbeddedMetrics"}
    make = on_ecs if name == "ECS" else on_lambda
    variables = variables_of(make(**everything, Audit="true"))
    known = {"POWERTOOLS_SERVICE_NAME", "LANGGRAPH_CHECKPOINTER_TYPE"}
    assert variables.keys() - known == {each for each in variables if _is_read(each)}
    assert variables["LANGGRAPH_CHECKPOINTER_CONFIG__TTL_SECONDS"] == "3600"


def _is_read(variable: str) -> bool:
    prefix, _, option = variable.partition("_CONFIG__")
    if prefix == "LANGGRAPH_CHECKPOINTER":
        return option.lower() in DynamoDBOptions.model_fields
    setting, _, limit = variable.removeprefix("LANGGRAPH_GATEWAY_").lower().partition("__")
    return setting in GatewayOptions.model_fields and (not limit or hasattr(Limits(), limit))


def test_a_function_url_is_for_callers_with_iam() -> None:
    stack = STACKS["function URL"]
    assert stack.properties("FunctionUrl")["AuthType"] == "AWS_IAM"
    assert not stack.of_type("AWS::Lambda::Permission")
    assert not stack.of_type("AWS::ApiGatewayV2::Api")


def test_another_account_gets_in_by_the_url_and_by_nothing_else() -> None:
    permissions = on_lambda(ClientPrincipal=CLIENT).of_type("AWS::Lambda::Permission").values()
    assert {each["Principal"] for each in permissions} == {CLIENT}
    by_action = {each["Action"]: each for each in permissions}
    assert by_action.keys() == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    assert by_action["lambda:InvokeFunctionUrl"]["FunctionUrlAuthType"] == "AWS_IAM"
    # Whoever may invoke the function directly may say in the event who they are.
    assert by_action["lambda:InvokeFunction"]["InvokedViaFunctionUrl"] is True


BY_URL = {"lambda:FunctionUrlAuthType": ["AWS_IAM"], "lambda:InvokedViaFunctionUrl": ["true"]}


@pytest.mark.parametrize(
    ("action", "context", "allowed"),
    [
        ("lambda:InvokeFunctionUrl", BY_URL, True),
        ("lambda:InvokeFunction", BY_URL, True),
        ("lambda:InvokeFunction", {}, False),
        ("lambda:InvokeFunction", {"lambda:InvokedViaFunctionUrl": ["false"]}, False),
        ("lambda:InvokeFunctionUrl", {"lambda:FunctionUrlAuthType": ["NONE"]}, False),
        ("lambda:UpdateFunctionCode", BY_URL, False),
        ("lambda:GetFunction", BY_URL, False),
        ("dynamodb:GetItem", BY_URL, False),
    ],
)
def test_the_agents_policy_calls_the_url_and_does_nothing_else(
    action: str, context: dict[str, list[str]], allowed: bool
) -> None:
    stack = STACKS["function URL"]
    document = stack.properties("ClientPolicy")["PolicyDocument"]
    arn = stack.outputs["FunctionArn"]
    assert is_allowed([document], Request(action, arn, context)) is allowed
    assert not is_allowed([document], Request(action, f"{arn}-2", context))
    assert stack.outputs["ClientPolicyArn"].endswith("policy/gateway-ClientPolicy")


def test_an_http_api_lets_in_nobody_without_a_token_and_nobody_to_anything_else() -> None:
    stack = STACKS["HTTP API"]
    assert stack.properties("HttpApiAuthorizer")["JwtConfiguration"] == {
        "Issuer": "https://issuer.example",
        "Audience": ["gateway", "agents"],
    }
    routes = stack.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes} == {"POST /{part}/{operation}", "GET /about"}
    # It has one route for all parts, each of which has a name and an operation.
    assert {each.path.count("/") for each in ALL_ENDPOINTS} == {2}
    assert {route["AuthorizationType"] for route in routes} == {"JWT"}
    assert {route["AuthorizerId"] for route in routes} == {"gateway-HttpApiAuthorizer"}
    assert not stack.of_type("AWS::Lambda::Url")
    assert "ClientPolicyArn" not in stack.outputs
    [permission] = stack.of_type("AWS::Lambda::Permission").values()
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["SourceArn"].endswith(":gateway-HttpApi/*")


def test_the_log_of_an_http_api_has_no_token_and_no_body() -> None:
    written = STACKS["HTTP API"].properties("HttpApiStage")["AccessLogSettings"]["Format"]
    assert "authorizer.claims.sub" in written
    assert not [word for word in ("header", "Authorization", "body", "queryString") if word in written]


def test_functions_answer_before_they_are_ended_and_concurrency_is_bounded() -> None:
    function = STACKS["HTTP API"].properties("Gateway")
    seconds = STACKS["HTTP API"].properties("HttpApiIntegration")["TimeoutInMillis"] / 1000
    assert int(function["Timeout"]) < seconds
    assert function["ReservedConcurrentExecutions"] == "50"
    assert "ReservedConcurrentExecutions" not in on_lambda(ReservedConcurrency="0").properties("Gateway")


def test_the_load_balancer_speaks_tls_only_and_to_the_service_alone() -> None:
    stack = STACKS["ECS"]
    [listener] = stack.of_type("AWS::ElasticLoadBalancingV2::Listener").values()
    assert (listener["Protocol"], listener["Port"]) == ("HTTPS", 443)
    assert "TLS13" in listener["SslPolicy"]
    [outside] = stack.properties("LoadBalancerSecurityGroup")["SecurityGroupIngress"]
    assert (outside["FromPort"], outside["ToPort"], outside["CidrIp"]) == (443, 443, "10.0.0.0/16")
    inside = stack.properties("TaskIngress")
    assert inside["SourceSecurityGroupId"] == "LoadBalancerSecurityGroup.GroupId"
    assert "SecurityGroupIngress" not in stack.properties("TaskSecurityGroup")
    assert (
        stack.properties("Service")["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"]
        == "DISABLED"
    )


def test_the_load_balancer_leads_to_what_agents_call_and_not_to_metrics() -> None:
    stack = STACKS["ECS"]
    [answer] = stack.properties("Listener")["DefaultActions"]
    assert answer["FixedResponseConfig"]["StatusCode"] == "404"
    [condition] = stack.properties("AgentsRule")["Conditions"]
    paths = condition["PathPatternConfig"]["Values"]
    called = {"/about", *(each.path for each in ALL_ENDPOINTS)}
    assert {path for path in called if any(fnmatchcase(path, each) for each in paths)} == called
    # What AWS takes in a rule.
    assert len(paths) <= 5
    assert not [path for path in paths if "metrics" in path or path in {"/*", "*"}]


def test_tasks_read_who_may_call_from_the_secret_and_from_nowhere_else() -> None:
    stack = STACKS["ECS"]
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    secrets = {each["Name"]: each["ValueFrom"] for each in container["Secrets"]}
    assert secrets == {
        "LANGGRAPH_GATEWAY_PRINCIPALS": PRINCIPALS_ARN,
    }
    [statement] = stack.properties("SecretPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == "secretsmanager:GetSecretValue"
    assert set(statement["Resource"]) == set(secrets.values())
    assert stack.properties("TaskRole")["ManagedPolicyArns"] == [TABLE_STACK.outputs["AgentPolicyArn"]]
    key = "arn:aws:kms:us-east-1:123456789012:key/secrets"
    own = on_ecs(PrincipalsSecretKmsKeyArn=key).properties("SecretPolicy")["PolicyDocument"]["Statement"][1]
    assert (own["Action"], own["Resource"]) == ("kms:Decrypt", key)
    assert own["Condition"] == {"StringEquals": {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}}


def test_both_give_up_on_dynamodb_before_their_own_limit_so_that_the_answer_names_the_cause() -> None:
    name = "LANGGRAPH_CHECKPOINTER_CONFIG__RETRY_SECONDS"
    assert {float(variables_of(stack)[name]) for stack in STACKS.values()} == {5.0}
    limit = float(variables_of(STACKS["function URL"])["LANGGRAPH_GATEWAY_LIMITS__REQUEST_SECONDS_MAX"])
    assert limit > 5.0
    assert Limits().request_seconds_max > 5.0


def test_an_audited_gateway_has_a_key_of_its_own() -> None:
    name = "LANGGRAPH_GATEWAY_AUDIT_KEY"
    assert "AuditKey" not in on_lambda().resources
    assert name not in variables_of(on_lambda())
    resolved = "{{resolve:secretsmanager:gateway-AuditKey:SecretString}}"
    assert variables_of(on_lambda(Audit="true"))[name] == resolved
    stack = on_ecs(Audit="true")
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    assert {"Name": name, "ValueFrom": "gateway-AuditKey"} in container["Secrets"]
    [statement] = stack.properties("SecretPolicy")["PolicyDocument"]["Statement"]
    assert "gateway-AuditKey" in statement["Resource"]
    assert stack.outputs["AuditKeyArn"] == "gateway-AuditKey"


def metrics_of(alarm: Node) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """The namespace, name and dimensions of each metric that an alarm reads."""
    sources = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
    for source in sources or [alarm]:
        yield (
            source["Namespace"],
            source["MetricName"],
            tuple(each["Name"] for each in source["Dimensions"]),
        )


@pytest.mark.parametrize("name", STACKS)
def test_alarms_watch_metrics_that_there_are(name: str) -> None:
    alarms = STACKS[name].of_type("AWS::CloudWatch::Alarm")
    assert {"FailedRequests", "RefusedRequests"} <= alarms.keys()
    for alarm in alarms.values():
        for namespace, metric, dimensions in metrics_of(alarm):
            assert dimensions == DIMENSIONS[namespace, metric]
        assert "AlarmActions" not in alarm


def test_every_size_of_task_that_is_not_refused_is_one_of_fargates() -> None:
    sizes = set()
    for cpu in ECS["Parameters"]["Cpu"]["AllowedValues"]:
        for memory in ECS["Parameters"]["Memory"]["AllowedValues"]:
            try:
                task = on_ecs(Cpu=str(cpu), Memory=str(memory)).properties("TaskDefinition")
            except StackRefusedError:
                continue
            sizes.add((int(task["Cpu"]), int(task["Memory"])))
    assert sizes == {(512, 1024), (512, 2048), (512, 4096), (1024, 2048), (1024, 4096), (2048, 4096)}
