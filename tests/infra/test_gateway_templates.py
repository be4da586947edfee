"""`gateway.yaml` and `ecs.yaml`: who gets in, what the service may do, and what is watched."""

import re
from fnmatch import fnmatchcase

import pytest

from langgraph.checkpoint.dynamodb._runtime.clients import default_config
from langgraph.checkpoint.dynamodb.config.dynamodb import DynamoDBOptions
from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.settings import GatewayOptions
from tests.infra.rendering import INFRA, Node, Stack, StackRefusedError, load
from tests.infra.stacks import DOMAIN, GATEWAYS, PRINCIPALS_ARN, TABLE_STACK, stack_of

READER_ARN = TABLE_STACK.outputs["ReaderPolicyArn"]
BY_LAMBDA, BY_ECS = "gateway.yaml", "ecs.yaml"
ECS = GATEWAYS["ECS"]
ON_LAMBDA, BEHIND_A_FIRST_DOOR = GATEWAYS["Lambda"], GATEWAYS["Lambda behind a first door"]


def role_of_the_service(stack: Stack) -> Node:
    """The role under which the service itself runs."""
    return stack.properties("TaskRole" if "TaskRole" in stack.resources else "GatewayRole")


@pytest.mark.parametrize("name", GATEWAYS)
def test_the_service_has_the_agents_policy_and_nothing_more_of_the_table(name: str) -> None:
    stack = GATEWAYS[name]
    own = "arn:aws:iam::123456789012:policy/beside-LogPolicy"
    given = set(role_of_the_service(stack)["ManagedPolicyArns"])
    assert given - {own} == {TABLE_STACK.outputs["AgentPolicyArn"]}
    policies = [role_of_the_service(stack).get("Policies"), stack.of_type("AWS::IAM::ManagedPolicy")]
    assert "dynamodb:" not in str(policies)


@pytest.mark.parametrize("template", [BY_LAMBDA, BY_ECS])
def test_another_policy_of_the_table_stands_in_for_the_agents(template: str) -> None:
    given = role_of_the_service(stack_of(template, TablePolicyArn=READER_ARN))["ManagedPolicyArns"]
    assert READER_ARN in given
    assert TABLE_STACK.outputs["AgentPolicyArn"] not in given


def variables_of(stack: Stack) -> dict[str, str]:
    """The environment of the service, without its secrets."""
    if "Gateway" in stack.resources:
        found: dict[str, str] = stack.properties("Gateway")["Environment"]["Variables"]
        return found
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    return {each["Name"]: each["Value"] for each in container["Environment"]}


def allocation_in_the_image() -> dict[str, str]:
    """What the image says of how memory is allocated: Lambda does not use the image."""
    text = (INFRA / "gateway" / "Dockerfile").read_text()
    return dict(re.findall(r"(MALLOC_\w+)=(\d+)", text))


@pytest.mark.parametrize("template", [BY_LAMBDA, BY_ECS])
def test_every_variable_is_one_that_the_service_reads(template: str) -> None:
    """Each parameter that sets one is given here."""
    everything = {"TtlSeconds": "3600", "OnEvent": "langgraph.checkpoint.dynamodb.observe:EmbeddedMetrics"}
    variables = variables_of(stack_of(template, **everything, Audit="true"))
    known = {"POWERTOOLS_SERVICE_NAME", "LANGGRAPH_CHECKPOINTER_TYPE", "AUDIT_KEY_SECRET_ARN"}
    known |= allocation_in_the_image().keys()
    assert {name: variables[name] for name in allocation_in_the_image()} == allocation_in_the_image()
    assert variables.keys() - known == {each for each in variables if _is_read(each)}
    assert variables["LANGGRAPH_CHECKPOINTER_CONFIG__TTL_SECONDS"] == "3600"


def _is_read(variable: str) -> bool:
    prefix, _, option = variable.partition("_CONFIG__")
    if prefix == "LANGGRAPH_CHECKPOINTER":
        return option.lower() in DynamoDBOptions.model_fields
    setting, _, limit = variable.removeprefix("LANGGRAPH_GATEWAY_").lower().partition("__")
    return setting in GatewayOptions.model_fields and (not limit or hasattr(Limits(), limit))


@pytest.mark.parametrize("stack", [ON_LAMBDA, BEHIND_A_FIRST_DOOR])
def test_an_http_api_leads_to_what_agents_call_and_nothing_else_leads_there(stack: Stack) -> None:
    routes = stack.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes} == {"POST /{part}/{operation}", "GET /about"}
    # It has one route for all parts, each of which has a name and an operation.
    assert {each.path.count("/") for each in ENDPOINTS} == {2}
    assert not stack.of_type("AWS::Lambda::Url")
    [permission] = stack.of_type("AWS::Lambda::Permission").values()
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["SourceArn"].endswith(":beside-HttpApi/*")


def test_an_http_api_refuses_other_tokens_if_it_knows_the_issuer_and_otherwise_bounds_strangers() -> None:
    assert BEHIND_A_FIRST_DOOR.properties("HttpApiAuthorizer")["JwtConfiguration"] == {
        "Issuer": "https://issuer.example",
        "Audience": ["gateway", "agents"],
    }
    routes = BEHIND_A_FIRST_DOOR.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["AuthorizationType"] for route in routes} == {"JWT"}
    assert {route["AuthorizerId"] for route in routes} == {"beside-HttpApiAuthorizer"}
    assert "HttpApiAuthorizer" not in ON_LAMBDA.resources
    for route in ON_LAMBDA.of_type("AWS::ApiGatewayV2::Route").values():
        assert (route["AuthorizationType"], "AuthorizerId" in route) == ("NONE", False)
    [stage] = ON_LAMBDA.of_type("AWS::ApiGatewayV2::Stage").values()
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == "500"
    assert "RouteSettings" not in stage


def test_the_log_of_an_http_api_has_no_token_and_no_body() -> None:
    written = BEHIND_A_FIRST_DOOR.properties("HttpApiStage")["AccessLogSettings"]["Format"]
    assert "authorizer.claims.sub" in written
    assert not [word for word in ("header", "Authorization", "body", "queryString") if word in written]


def test_concurrency_is_bounded() -> None:
    """What Lambda rejects is no 429, so a burst is refused before it comes there."""
    for reserved, burst in (("50", "50"), ("7", "7"), ("0", "500")):
        stack = stack_of(BY_LAMBDA, ReservedConcurrency=reserved)
        function = stack.properties("Gateway")
        assert function.get("ReservedConcurrentExecutions", "0") == reserved
        assert stack.properties("HttpApiStage")["DefaultRouteSettings"]["ThrottlingBurstLimit"] == burst


def test_a_name_of_its_own_leads_to_the_http_api() -> None:
    assert not ON_LAMBDA.of_type("AWS::ApiGatewayV2::DomainName")
    stack = stack_of(BY_LAMBDA, **DOMAIN)
    assert stack.outputs["Url"] == "https://gateway.example.com"
    mapping = stack.properties("DomainMapping")
    assert (mapping["ApiId"], mapping["Stage"]) == ("beside-HttpApi", "beside-HttpApiStage")
    [configuration] = stack.properties("Domain")["DomainNameConfigurations"]
    assert configuration["CertificateArn"] == DOMAIN["DomainCertificateArn"]


@pytest.mark.parametrize("name", GATEWAYS)
def test_who_waits_gives_up_after_whoever_it_waits_for_so_that_an_answer_names_the_cause(name: str) -> None:
    """The attempts of a request to DynamoDB, then the service's own bound, then Lambda's, then the way in's."""
    stack, config = GATEWAYS[name], default_config()
    variables = variables_of(stack)
    trying = float(variables["LANGGRAPH_CHECKPOINTER_CONFIG__RETRY_SECONDS"])
    own = Limits().request_seconds_max
    bounds = [
        trying + config.connect_timeout + config.read_timeout,
        float(variables.get("LANGGRAPH_GATEWAY_LIMITS__REQUEST_SECONDS_MAX", own)),
    ]
    if name != "ECS":
        bounds.append(int(stack.properties("Gateway")["Timeout"]))
        bounds.append(stack.properties("HttpApiIntegration")["TimeoutInMillis"] / 1000)
    assert bounds == sorted(set(bounds))


def test_the_load_balancer_speaks_tls_only_and_to_the_service_alone() -> None:
    [listener] = ECS.of_type("AWS::ElasticLoadBalancingV2::Listener").values()
    assert (listener["Protocol"], listener["Port"]) == ("HTTPS", 443)
    assert "TLS13" in listener["SslPolicy"]
    [outside] = ECS.properties("LoadBalancerSecurityGroup")["SecurityGroupIngress"]
    assert (outside["FromPort"], outside["ToPort"], outside["CidrIp"]) == (443, 443, "10.0.0.0/16")
    inside = ECS.properties("TaskIngress")
    assert inside["SourceSecurityGroupId"] == "LoadBalancerSecurityGroup.GroupId"
    assert "SecurityGroupIngress" not in ECS.properties("TaskSecurityGroup")
    assert (
        ECS.properties("Service")["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"]
        == "DISABLED"
    )


def test_the_load_balancer_leads_to_what_agents_call_and_not_to_metrics() -> None:
    [answer] = ECS.properties("Listener")["DefaultActions"]
    assert answer["FixedResponseConfig"]["StatusCode"] == "404"
    [condition] = ECS.properties("AgentsRule")["Conditions"]
    paths = condition["PathPatternConfig"]["Values"]
    called = {"/about", *(each.path for each in ENDPOINTS)}
    assert {path for path in called if any(fnmatchcase(path, each) for each in paths)} == called
    # What AWS takes in a rule.
    assert len(paths) <= 5
    assert not [path for path in paths if "metrics" in path or path in {"/*", "*"}]


def test_tasks_read_who_may_call_from_the_secret_and_from_nowhere_else() -> None:
    [container] = ECS.properties("TaskDefinition")["ContainerDefinitions"]
    secrets = {each["Name"]: each["ValueFrom"] for each in container["Secrets"]}
    assert secrets == {"LANGGRAPH_GATEWAY_PRINCIPALS": PRINCIPALS_ARN}
    [statement] = ECS.properties("SecretPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == "secretsmanager:GetSecretValue"
    assert set(statement["Resource"]) == set(secrets.values())
    assert ECS.properties("TaskRole")["ManagedPolicyArns"] == [TABLE_STACK.outputs["AgentPolicyArn"]]
    key = "arn:aws:kms:us-east-1:123456789012:key/secrets"
    own = stack_of(BY_ECS, PrincipalsSecretKmsKeyArn=key).properties("SecretPolicy")["PolicyDocument"][
        "Statement"
    ][1]
    assert (own["Action"], own["Resource"]) == ("kms:Decrypt", key)
    assert own["Condition"] == {"StringEquals": {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}}


def test_an_audited_gateway_has_a_key_of_its_own() -> None:
    name = "LANGGRAPH_GATEWAY_AUDIT_KEY"
    assert "AuditKey" not in ON_LAMBDA.resources
    assert name not in variables_of(ON_LAMBDA)
    audited = stack_of(BY_LAMBDA, Audit="true")
    # Not the key, which whoever may list functions would see.
    assert {name, "AUDIT_KEY_SECRET_ARN"} & variables_of(audited).keys() == {"AUDIT_KEY_SECRET_ARN"}
    assert "{{resolve" not in str(audited)
    [_, read] = audited.properties("LogPolicy")["PolicyDocument"]["Statement"]
    assert (read["Action"], read["Resource"]) == ("secretsmanager:GetSecretValue", "beside-AuditKey")
    stack = stack_of(BY_ECS, Audit="true")
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    assert {"Name": name, "ValueFrom": "beside-AuditKey"} in container["Secrets"]
    [statement] = stack.properties("SecretPolicy")["PolicyDocument"]["Statement"]
    assert "beside-AuditKey" in statement["Resource"]
    assert stack.outputs["AuditKeyArn"] == "beside-AuditKey"


def test_every_size_of_task_that_is_not_refused_is_one_of_fargates() -> None:
    parameters, sizes = load(BY_ECS)["Parameters"], set()
    for cpu in parameters["Cpu"]["AllowedValues"]:
        for memory in parameters["Memory"]["AllowedValues"]:
            try:
                task = stack_of(BY_ECS, Cpu=str(cpu), Memory=str(memory)).properties("TaskDefinition")
            except StackRefusedError:
                continue
            sizes.add((int(task["Cpu"]), int(task["Memory"])))
    assert sizes == {(512, 1024), (512, 2048), (512, 4096), (1024, 2048), (1024, 4096), (2048, 4096)}


def test_the_sample_agent_has_no_principals_and_no_path_of_the_gateway() -> None:
    stack = stack_of(BY_ECS, PrincipalsSecretArn="")
    [container] = stack.properties("TaskDefinition")["ContainerDefinitions"]
    assert container["Secrets"] == []
    assert "SecretPolicy" not in stack.resources
    [condition] = stack.properties("AgentsRule")["Conditions"]
    assert condition["PathPatternConfig"]["Values"] == ["/threads/*"]
    assert stack.properties("LoadBalancer")["Scheme"] == "internal"


@pytest.mark.parametrize("image", ["gateway", "examples/ecs-agent"])
def test_the_container_runs_as_the_user_that_the_image_has(image: str) -> None:
    [container] = stack_of(BY_ECS).properties("TaskDefinition")["ContainerDefinitions"]
    user = container["User"]
    file = (INFRA / image / "Dockerfile").read_text()
    assert re.findall(r"^USER (\d+)$|useradd --uid (\d+) ", file, re.MULTILINE) == [("", user), (user, "")]
    assert user != "0"
