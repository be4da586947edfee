"""AWS Signature Version 4 for requests to a gateway behind a function URL, or behind an API with IAM authorization.

botocore signs. It is loaded with the first request, so that an agent without AWS access does not need it.
"""

from __future__ import annotations

from typing import Any, Literal

from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process, without_forks
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerInputError

_SERVICES = ("lambda", "execute-api")


class SigV4:
    """Signs requests to the gateway with the credentials that boto3 finds.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, SigV4

        url = "https://abcdef.lambda-url.eu-west-1.on.aws"
        saver = HttpCheckpointSaver(url, auth=SigV4("lambda", "eu-west-1"))
        ```

    Args:
        service: `lambda` for a function URL, `execute-api` for API Gateway.
        region_name: The region of either; by default that of boto3's configuration.

    Raises:
        CheckpointerInputError: `service` is neither of these.
    """

    def __init__(self, service: Literal["lambda", "execute-api"], region_name: str | None = None) -> None:
        """Take the service and the region. Credentials are looked up with the first request."""
        if service not in _SERVICES:
            raise CheckpointerInputError(f"service is {service!r}; give one of {', '.join(_SERVICES)}")
        self._service = service
        self._region_name = region_name
        start_in_every_process(self)

    def start(self) -> None:
        """Start without credentials; also after a fork, which may have come while an OS thread was renewing them."""
        self._found: tuple[Any, str] | None = None

    def headers(self, method: str, url: str, content: bytes) -> dict[str, str]:
        """Return the headers that sign a request. Blocks while credentials are being looked up.

        Raises:
            CheckpointerConfigurationError: There are no credentials, or no region.
        """
        with without_forks():
            from botocore.auth import SigV4Auth  # noqa: PLC0415
            from botocore.awsrequest import AWSRequest  # noqa: PLC0415
            from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        try:
            if self._found is None:
                self._found = self._find()
            credentials, region_name = self._found
            request: Any = AWSRequest(method, url, data=content)
            frozen = credentials.get_frozen_credentials()
        except BotoCoreError as error:
            msg = (
                f"no usable AWS credentials to sign requests with ({error}); give the function or task a role"
            )
            raise CheckpointerConfigurationError(msg) from error
        SigV4Auth(frozen, self._service, region_name).add_auth(request)
        return dict(request.headers.items())

    def _find(self) -> tuple[Any, str]:
        with without_forks():
            from botocore.session import get_session  # noqa: PLC0415

            session = get_session()
        region_name = self._region_name or session.get_config_variable("region")
        if not region_name:
            msg = "no AWS region to sign requests for; pass region_name= to SigV4 or set AWS_DEFAULT_REGION"
            raise CheckpointerConfigurationError(msg)
        credentials = session.get_credentials()
        if credentials is None:
            msg = "no AWS credentials to sign requests with; give the function or task a role, or set AWS_PROFILE"
            raise CheckpointerConfigurationError(msg)
        return credentials, region_name
