"""The stacks that tests look at: each template with what it has no defaults for, beside the table's stack."""

import json

from tests.infra.rendering import Stack, load, render

WHO = json.dumps({"bearer": {"agents": {"sha256": ["0" * 64], "tenant": "acme"}}})
CODE = {"CodeBucket": "packages", "CodeKey": "key"}
PRINCIPALS_ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:principals-a1b2c3"
FIRST_DOOR = {"JwtIssuer": "https://issuer.example", "JwtAudiences": "gateway,agents"}
DOMAIN = {
    "DomainName": "gateway.example.com",
    "DomainCertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1",
}
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
_TABLE = {"TableStackName": "checkpoints"}
GIVEN: dict[str, dict[str, str]] = {
    "table.yaml": {},
    "observability.yaml": _TABLE,
    "saver-metrics.yaml": {"Service": "agent"},
    "tenant.yaml": {**_TABLE, "Tenant": "acme"},
    "gateway.yaml": {**_TABLE, **CODE, "Principals": WHO},
    "ecs.yaml": {
        **_TABLE,
        "VpcId": "vpc-1",
        "ClientCidr": "10.0.0.0/16",
        "PrincipalsSecretArn": PRINCIPALS_ARN,
        "LoadBalancerSubnetIds": "subnet-1,subnet-2",
        "TaskSubnetIds": "subnet-3,subnet-4",
        "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1",
        "Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/gateway:1",
        "AccessLogBucket": "access-logs",
        "WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:regional/webacl/gateway/1",
    },
    "examples/lambda-agent/template.yaml": {**_TABLE, **CODE},
}

TABLE_STACK = render(load("table.yaml"))


def stack_of(template: str, **parameters: str) -> Stack:
    """The stack of a template, with the name "beside" where it is not the table's own."""
    if template == "table.yaml":
        return render(load(template), parameters)
    given = {**GIVEN[template], **parameters}
    return render(load(template), given, stack_name="beside", exports=TABLE_STACK.exports)


# The gateway, where it runs.
GATEWAYS = {
    "Lambda": stack_of("gateway.yaml"),
    "Lambda behind a first door": stack_of("gateway.yaml", **FIRST_DOOR),
    "ECS": stack_of("ecs.yaml"),
}
