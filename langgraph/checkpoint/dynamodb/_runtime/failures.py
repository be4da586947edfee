"""Failed requests: the error's code, whether it is transient, and what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ECONNREFUSED
from importlib import metadata
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .._format.schema import DOCS_COMMAND
from ..errors import CheckpointerError

Failure = TypeVar("Failure", bound=CheckpointerError)

THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "Throttling",
        "TooManyRequestsException",
    }
)

# DynamoDB names a reason for throttling by resource, direction and one of these. Each has its own remedy.
_THROTTLE_REMEDIES = {
    "KeyRangeThroughputExceeded": "one partition key gets more requests than DynamoDB allows; find the busy thread",
    "ProvisionedThroughputExceeded": "raise the provisioned capacity, or the maximum of its auto scaling",
    "MaxOnDemandThroughputExceeded": "raise MaxReadRequestUnits or MaxWriteRequestUnits of the table's stack",
    "AccountLimitExceeded": "ask AWS to raise the account's quota for one table",
}
_THROTTLE_REMEDY = "raise the table's capacity or its maximum, unless one partition key is hot"

# DynamoDB's messages if it may not use the key that encrypts the table. The code is that of the key's error.
_KEY_REFUSED = ("KMS key access denied error", "com.amazonaws.services.kms.model")

# What to do about an error of the account's set-up, by codes of AWS and names of botocore's exceptions.
_REMEDIES = {
    ("AccessDenied", "AccessDeniedException", "NotAuthorized", "UnauthorizedOperation"): (
        "access to table {table} was denied for {action} ({text}); attach the policy in the output AgentPolicyArn of"
        " the table's stack to the role (OperatorPolicyArn to prune, delete or scan)"
    ),
    (
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "SSOTokenLoadError",
        "UnauthorizedSSOTokenError",
    ): (
        "the AWS credentials for table {table} have expired ({text}); sign in again (`aws sso login`), or pass a"
        " session= that renews them"
    ),
    (
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    ): (
        "AWS does not know the credentials for table {table} ({text}); check the access key, its session token and its"
        " account, and region_name"
    ),
    ("InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch"): (
        "AWS refused the signature of a request to table {table} ({text}); set this machine's clock by NTP, and check"
        " the secret access key"
    ),
    # The table may be named in a configuration that needs the profile first.
    ("ProfileNotFound",): (
        "there is no such AWS profile ({text}); check AWS_PROFILE and ~/.aws/config, or pass session="
    ),
    ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError"): (
        "no usable AWS credentials for table {table} ({text}); give the function or task a role, run `aws configure`,"
        " or pass session="
    ),
    ("NoRegionError",): (
        "no AWS region for table {table}; pass region_name= or set AWS_DEFAULT_REGION (boto3 ignores AWS_REGION)"
    ),
    ("InvalidRegionError",): "no AWS region can have this name ({text}); check region_name",
}


def error_code(error: object) -> str:
    """Return the code of an AWS error, whichever client raised it; empty for other errors."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return ""
    return str(response.get("Error", {}).get("Code", ""))


def about_request(failure: Failure, error: Exception, attempts: int | None = None) -> Failure:
    """Return an error of ours with the code and the id of a failed request, and how often it was sent."""
    failure.code = error_code(error) or None
    failure.attempts = attempts
    response = getattr(error, "response", None) or {}
    failure.request_id = response.get("ResponseMetadata", {}).get("RequestId")
    return failure


@contextmanager
def locating(client: Any) -> Iterator[None]:
    """Add the client's region to an error of a request, so that its message can name it."""
    try:
        yield
    except Exception as error:
        with suppress(AttributeError):
            error.region_name = client.meta.region_name  # type: ignore[attr-defined]
        raise


def located(table_name: str, error: object) -> str:
    """Return a table's name, with the region of the failed request if that is known."""
    region_name = getattr(error, "region_name", None)
    return f"{table_name} in {region_name}" if isinstance(region_name, str) else table_name


def text_of(error: Exception) -> str:
    """Return an error's message. botocore says that it did not retry, where the saver did."""
    return str(error).replace(" (reached max retries: 0)", "")


def has_no_response(error: Exception) -> bool:
    """Tell whether a request failed because no server answered it."""
    from botocore.exceptions import ConnectionError, HTTPClientError  # noqa: PLC0415 - importing the saver should cost little.

    return isinstance(error, (ConnectionError, HTTPClientError))


def is_of_this_machine(host: str) -> bool:
    """Tell whether a name or an address always means this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _refused_here(error: Exception) -> str | None:
    """Return the address on this machine where nothing listens, if that is why a request failed."""
    details = getattr(error, "kwargs", {})
    address = str(details.get("endpoint_url", ""))
    is_here = is_of_this_machine(urlsplit(address).hostname or "")
    cause: BaseException | None = details.get("error")
    while cause is not None:
        if is_here and isinstance(cause, OSError) and cause.errno == ECONNREFUSED:
            return address
        cause = cause.__cause__ or cause.__context__
    return None


def is_transient(error: Exception) -> bool:
    """Tell whether the same request may succeed later: it was throttled, failed on AWS's side or got no response.

    If nothing listens on this machine's own address, nobody is about to. That is not an outage.
    """
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return has_no_response(error) and _refused_here(error) is None
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    # 501 says that a server never serves such a request, as one does that is not DynamoDB.
    return (status >= 500 and status != 501) or error_code(error) in THROTTLED


def account_remedy(table_name: str, error: Exception) -> str | None:
    """Return what to do about an error of the account's set-up; `None` for other errors."""
    table, text = located(table_name, error), text_of(error)
    if any(each in text for each in _KEY_REFUSED):
        return (
            f"the KMS key of table {table} cannot be used ({text}); enable the key, or let its policy and the role's"
            f" allow kms:Decrypt through DynamoDB; see `{DOCS_COMMAND} runbook`"
        )
    action = f"dynamodb:{getattr(error, 'operation_name', '')}".rstrip(":")
    for names, remedy in _REMEDIES.items():
        if error_code(error) in names or type(error).__name__ in names:
            return remedy.format(table=table, action=action, text=text)
    return _endpoint_remedy(table, error)


def _endpoint_remedy(table_name: str, error: Exception) -> str | None:
    """Return what to do if nothing, or another server than DynamoDB, is at the endpoint; `None` for other errors."""
    refused = _refused_here(error)
    if refused is not None:
        return (
            f"nothing listens at {refused} for table {table_name}; start what should, such as DynamoDB Local, or check"
            " endpoint_url"
        )
    if error_code(error).isdecimal() and not is_transient(error):
        # botocore takes the status for the code if the body names none. DynamoDB's always does.
        return not_dynamodb(table_name, text_of(error))
    return None


def not_dynamodb(table_name: str, answer: object) -> str:
    """Return what to do about an answer that DynamoDB would not give."""
    return (
        f"another server than DynamoDB answered for table {table_name} ({answer}); check endpoint_url, and the proxies"
        " in the environment"
    )


def throttling(error: Exception) -> str | None:
    """Return what to do about throttling, without the names of resources; `None` for other errors."""
    if error_code(error) not in THROTTLED:
        return None
    remedies = dict.fromkeys(_throttle_remedy(reason) for reason, _ in _throttling_reasons(error))
    return "; ".join(remedies or [_THROTTLE_REMEDY])


def outage_remedy(table_name: str, error: Exception) -> str:
    """Return what to do about a transient error that does not pass."""
    table_name, text = located(table_name, error), text_of(error)
    if error_code(error) in THROTTLED:
        causes = ", ".join(f"{reason} of {resource}" for reason, resource in _throttling_reasons(error))
        return (
            f"DynamoDB throttles table {table_name}{causes and f': {causes}'} ({text}); {throttling(error)}; see"
            f" `{DOCS_COMMAND} runbook`"
        )
    if error_code(error):
        return f"DynamoDB fails for table {table_name} ({text}); see AWS's health dashboard for the region"
    return (
        f"no answer from DynamoDB for table {table_name} ({text}); check endpoint_url, region_name, the route to the"
        " endpoint (VPC, security groups) and the proxies in the environment"
    )


def _throttling_reasons(error: Exception) -> list[tuple[str, str]]:
    """Return DynamoDB's reasons for throttling, each with the table or index; empty if the engine names none."""
    response = getattr(error, "response", {})
    # One of the exceptions spells it with a small letter in its model.
    found = response.get("ThrottlingReasons") or response.get("throttlingReasons") or []
    return [(each["reason"], each.get("resource", "?")) for each in found if each.get("reason")]


def _throttle_remedy(reason: str) -> str:
    return next(
        (remedy for limit, remedy in _THROTTLE_REMEDIES.items() if reason.endswith(limit)), _THROTTLE_REMEDY
    )


def misfit() -> str | None:
    """Say that aiobotocore does not fit botocore, and what mends it; `None` if it fits or is not installed.

    aiobotocore works with a few releases of botocore only. An installer that adds a package with a newer boto3 may
    leave a pair that does not fit, and its first request then ends in an error deep inside aiobotocore.
    """
    from packaging.requirements import Requirement  # noqa: PLC0415 - importing the saver should cost little.

    try:
        requirements = [Requirement(each) for each in metadata.requires("aiobotocore") or ()]
        own, installed = metadata.version("aiobotocore"), metadata.version("botocore")
    except metadata.PackageNotFoundError:
        return None
    for each in requirements:
        if each.name == "botocore" and not each.specifier.contains(installed, prereleases=True):
            return (
                f"aiobotocore {own} needs botocore {each.specifier}, and botocore {installed} is installed; run"
                ' `pip install --upgrade "aiobotocore[boto3]"`, which installs versions that fit'
            )
    return None
