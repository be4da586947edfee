"""Templates refuse parameters that AWS would refuse later, or take for something else, with advice."""

import pytest

from tests.infra.rendering import StackRefusedError
from tests.infra.stacks import DOMAIN, FIRST_DOOR, KEY_ARN, stack_of

WRONG: dict[str, list[tuple[dict[str, str], str]]] = {
    "table.yaml": [
        ({"Encryption": "CUSTOMER"}, "Pass the key's ARN"),
        ({"KmsKeyArn": KEY_ARN}, "leave KmsKeyArn empty"),
        ({"Encryption": "AWS_MANAGED", "KmsKeyArn": KEY_ARN}, "leave KmsKeyArn empty"),
        ({"Encryption": "CUSTOMER", "KmsKeyArn": "alias/mine"}, "must be the ARN of a key"),
        ({"TableName": "ab"}, "must be 3 to 255 letters"),
        ({"PointInTimeRecoveryDays": "36"}, "1 to 35 days, or 0"),
        ({"MaxReadRequestUnits": "-1"}, "0 for no maximum"),
        ({"WarmReadUnits": "12000"}, "both WarmReadUnits and WarmWriteUnits"),
        ({"ResourcePolicyPrincipals": "*"}, "must be the ARNs of roles"),
        ({"Colour": "blue"}, "do not exist in the template"),
    ],
    "observability.yaml": [
        ({"AlarmTopicArn": "oncall"}, "must be the ARN of a standard SNS topic"),
        ({"QuietMinutes": "1441"}, "5 to 1440 minutes, or 0"),
        *(({"QuietMinutes": each}, "QuietMinutes is 5 or more, or 0") for each in "1234"),
        ({"TableStackName": "absent"}, "No export named absent-TableName found"),
    ],
    "saver-metrics.yaml": [
        ({"LockWaitMilliseconds": "0"}, "1 or more milliseconds"),
        ({"Service": "my agent"}, "the dimension"),
    ],
    # A name that is no literal prefix would let a tenant reach others.
    "tenant.yaml": [
        ({"Tenant": name}, "must be letters, digits, dots")
        for name in ("tenant-a/", "*", "tenant?", "${aws:userid}", "a b", "a#b", "%41")
    ],
    "gateway.yaml": [
        ({"Principals": "x" * 3001}, "where the claims of a token say who may do what"),
        ({"Principals": ""}, "must be a mapping as JSON or YAML"),
        ({"Runtime": "nodejs22.x"}, "must be a runtime of Lambda such as python3.13"),
        *(
            ({name: value}, "both JwtIssuer and JwtAudiences, or neither")
            for name, value in FIRST_DOOR.items()
        ),
        *(
            ({name: value}, "both DomainName and DomainCertificateArn, or neither")
            for name, value in DOMAIN.items()
        ),
        ({**FIRST_DOOR, "JwtIssuer": "http://issuer.example"}, "begins with https://"),
        ({"CodeBucket": "My_Bucket"}, "must be the name of an S3 bucket"),
        ({"ReservedConcurrency": "-1"}, "or 0 to reserve none"),
    ],
    "ecs.yaml": [
        ({"PrincipalsSecretArn": "principals"}, "must be the ARN of a secret"),
        ({"PrincipalsSecretArn": "", "Scheme": "internet-facing"}, "authenticates nobody"),
        ({"ClientCidr": "everybody"}, "must be a range of addresses"),
        ({"CertificateArn": "gateway.example"}, "must be the ARN of a certificate"),
        ({"Image": "UPPER CASE"}, "must be the address of an image"),
        ({"RouteTableIds": "rtb-1, rtb-2"}, "route table ids without spaces"),
        ({"Cpu": "1024", "Memory": "1024"}, "Fargate has no task"),
        ({"WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/a/1"}, "regional web ACL"),
    ],
    "examples/lambda-agent/template.yaml": [({"Timeout": "60"}, "must be 90 to 900 seconds")],
}


@pytest.mark.parametrize(
    ("template", "wrong", "advice"),
    [(template, *each) for template, wrong in WRONG.items() for each in wrong],
)
def test_wrong_parameters_are_refused_with_advice(template: str, wrong: dict[str, str], advice: str) -> None:
    stack_of(template)
    with pytest.raises(StackRefusedError, match=advice):
        stack_of(template, **wrong)
