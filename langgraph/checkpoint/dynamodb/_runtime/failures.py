"""What a failed request means: its code, whether it can pass by itself, and what mends it."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format.schema import DOCS_COMMAND

THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "Throttling",
        "TooManyRequestsException",
    }
)

# DynamoDB names what it throttles for by resource, direction and one of these, and each needs something else.
_THROTTLE_REMEDIES = {
    "KeyRangeThroughputExceeded": "a partition key has more requests than one key can have; see which is hot",
    "ProvisionedThroughputExceeded": "raise the provisioned capacity, or the maximum of its auto scaling",
    "MaxOnDemandThroughputExceeded": "raise MaxReadRequestUnits or MaxWriteRequestUnits of the table's stack",
    "AccountLimitExceeded": "ask AWS to raise the account's quota for one table",
}
_THROTTLE_REMEDY = "raise the table's capacity or its maximum, unless one partition key is hot"

# What DynamoDB says where it may not use the key that the table is encrypted with; the code is that of the key's error.
_KEY_REFUSED = ("KMS key access denied error", "com.amazonaws.services.kms.model")

_NO_CREDENTIALS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
    }
)
_LAPSED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "SSOTokenLoadError",
        "UnauthorizedSSOTokenError",
    }
)
_UNKNOWN = frozenset(
    {
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
_BADLY_SIGNED = frozenset({"InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch"})
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "NotAuthorized", "UnauthorizedOperation"})


def error_code(error: object) -> str:
    """The code of an AWS error, whichever client raised it; empty for other errors."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return ""
    return str(response.get("Error", {}).get("Code", ""))


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed a moment later: throttled, failed on AWS's side, or without an answer."""
    from botocore.exceptions import (  # noqa: PLC0415 - importing the saver should cost little.
        ConnectionError,
        HTTPClientError,
    )

    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return isinstance(error, (ConnectionError, HTTPClientError))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or error_code(error) in THROTTLED


def account_remedy(table_name: str, error: Exception) -> str | None:
    """What to do about an error of the account's set-up; None for other errors."""
    code, kind = error_code(error), type(error).__name__
    if any(each in str(error) for each in _KEY_REFUSED):
        return (
            f"the KMS key of table {table_name} cannot be used ({error}); enable the key, or let its policy and the"
            f" role's allow kms:Decrypt through DynamoDB; see `{DOCS_COMMAND} bad-days`"
        )
    if code in _DENIED:
        action = f"dynamodb:{getattr(error, 'operation_name', '')}".rstrip(":")
        return (
            f"access to table {table_name} was denied for {action} ({error}); attach the policy that the stack of"
            " infra/table.yaml puts out as AgentPolicyArn (OperatorPolicyArn to prune, delete and scan) to the role"
        )
    if code in _LAPSED or kind in _LAPSED:
        return (
            f"the AWS credentials for table {table_name} have expired ({error}); sign in again (`aws sso login`),"
            " or pass a session= that renews them"
        )
    if code in _UNKNOWN:
        return (
            f"AWS does not know the credentials for table {table_name} ({error}); check the access key, its session"
            " token and its account, and region_name"
        )
    if code in _BADLY_SIGNED:
        return (
            f"AWS refused the signature of a request to table {table_name} ({error}); set this machine's clock by NTP,"
            " and check the secret access key"
        )
    if kind == "ProfileNotFound":
        return f"no AWS profile for table {table_name} ({error}); check AWS_PROFILE and ~/.aws/config, or pass session="
    if kind in _NO_CREDENTIALS:
        return (
            f"no usable AWS credentials for table {table_name} ({error}); give the function or task a role, run"
            " `aws configure`, or pass session="
        )
    if kind == "NoRegionError":
        return f"no AWS region for table {table_name}; pass region_name= or set AWS_DEFAULT_REGION"
    return None


def outage_remedy(table_name: str, error: Exception) -> str:
    """What to do about a transient error that does not pass."""
    if error_code(error) in THROTTLED:
        reasons = _throttling_reasons(error)
        causes = ", ".join(f"{reason} of {resource}" for reason, resource in reasons)
        remedies = dict.fromkeys(_throttle_remedy(reason) for reason, _ in reasons) or [_THROTTLE_REMEDY]
        return (
            f"DynamoDB throttles table {table_name}{causes and f': {causes}'} ({error}); {'; '.join(remedies)}; see"
            f" `{DOCS_COMMAND} bad-days`"
        )
    if error_code(error):
        return f"DynamoDB fails for table {table_name} ({error}); see AWS's health dashboard for the region"
    return (
        f"no answer from DynamoDB for table {table_name} ({error}); check endpoint_url, region_name, the route to the"
        " endpoint (VPC, security groups) and the proxies in the environment"
    )


def _throttling_reasons(error: Exception) -> list[tuple[str, str]]:
    """What DynamoDB throttles for, and the table or index; nothing from engines and releases that do not say it."""
    response = getattr(error, "response", {})
    # The one exception's model has it with a small letter.
    found = response.get("ThrottlingReasons") or response.get("throttlingReasons") or []
    return [(each["reason"], each.get("resource", "?")) for each in found if each.get("reason")]


def _throttle_remedy(reason: str) -> str:
    return next(
        (remedy for limit, remedy in _THROTTLE_REMEDIES.items() if reason.endswith(limit)), _THROTTLE_REMEDY
    )
