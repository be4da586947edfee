"""The service's settings: principals, limits and more, from a file or the environment.

They are in the file that also configures the checkpointer, under `gateway`, or in variables that begin with
`LANGGRAPH_GATEWAY_`. A message about a mistake never contains a value.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

from ..config import fields, model, sources
from ..config.dynamodb import DynamoDBOptions, make_saver
from ..errors import CheckpointerConfigurationError
from ..saver import DynamoDBSaver
from . import authentication
from .app import create_gateway
from .authentication import Authenticate, JwtOptions, Rights, Tenant, anybody_on_this_machine
from .limits import Limits
from .serving import Principal

logger = logging.getLogger(__name__)

_SUBJECT = sources.Subject("gateway", is_required=False)
_UNGUARDED = (
    "the gateway needs principals in its configuration: bearer or jwt; with --insecure anybody on this machine may do"
    " anything"
)


def _parsed(value: Any) -> Any:
    """Parse a mapping from text: a secret is one variable, with JSON or YAML in it."""
    if not isinstance(value, str):
        return value
    try:
        return yaml.load(value, Loader=sources.StrictLoader)  # noqa: S506 - it makes what `SafeLoader` makes.
    except yaml.YAMLError:
        raise ValueError("give a mapping, or one as JSON or YAML, with each key once") from None


class BearerOptions(fields.Options):
    """A principal that has random tokens."""

    sha256: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]],
        BeforeValidator(fields.split),
        Field(min_length=1),
    ] = Field(description="The SHA-256 hashes of its tokens, in hexadecimal; two while one is replaced.")
    tenant: Tenant | None = Field(
        default=None, description="The tenant whose threads the principal may use; without one, all threads."
    )
    owner: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The owner whose threads the principal may use, without the tenant's name; without"
            " one, all of the tenant."
        ),
    )
    rights: Rights = Field(
        default=["read", "write"], description="Any of read, write and administer; none contains another."
    )

    def principal(self, name: str) -> Principal:
        """Return the principal of that name."""
        return Principal(name, self.tenant, frozenset(self.rights), self.owner)


class PrincipalsOptions(fields.Options):
    """The principals, by way of authentication."""

    bearer: dict[str, BearerOptions] = Field(
        default={}, description="Principals with random tokens, by their names."
    )
    jwt: JwtOptions | None = Field(
        default=None, description="Whose JSON Web Tokens are accepted, and what their claims mean."
    )

    @field_validator("bearer")
    @classmethod
    def _are_told_apart(cls, bearer: dict[str, BearerOptions]) -> dict[str, BearerOptions]:
        names = dict[str, str]()
        for name, each in bearer.items():
            for digest in map(str.lower, each.sha256):
                if names.setdefault(digest, name) != name:
                    raise ValueError(
                        f"{names[digest]} and {name} have the same hash; give each a token of its own"
                    )
        return bearer

    def authenticate(self) -> Authenticate:
        """Return a function that authenticates requests."""
        bearer = authentication.BearerTokens(
            {each.principal(name): each.sha256 for name, each in self.bearer.items()}
        )
        return (
            bearer
            if self.jwt is None
            else authentication.either(bearer, authentication.JsonWebTokens(self.jwt))
        )


class GatewayOptions(fields.Options):
    """The settings of the service."""

    principals: Annotated[PrincipalsOptions, BeforeValidator(_parsed)] = Field(
        default=PrincipalsOptions(),
        description="Who may send requests, and which; also as one text, JSON or YAML.",
    )
    principals_file: str | None = Field(
        default=None,
        description="A YAML file whose `gateway.principals` count instead, and are read again when it changes.",
    )
    limits: Limits = Field(
        default=Limits(), description="How much one request, and one principal, may ask for."
    )
    audit_key: Annotated[SecretStr, Field(min_length=16)] | None = Field(
        default=None,
        description="A secret. With it, the access log has a keyed digest of each thread's id, and the ids of AWS's"
        " requests.",
    )

    def gateway(
        self,
        saver: DynamoDBSaver,
        *,
        insecure: bool = False,
        source: str | os.PathLike[str] | None = None,
    ) -> Starlette:
        """Make the service. If the file that these settings are from changes, the principals are read again."""
        principals = self.principals
        if self.principals_file is not None:
            if principals != PrincipalsOptions():
                raise CheckpointerConfigurationError("configure principals or principals_file, not both")
            source, principals = self.principals_file, load_options(self.principals_file).principals
        if (principals == PrincipalsOptions()) is not insecure:
            raise CheckpointerConfigurationError(
                "configure principals or give insecure, not both" if insecure else _UNGUARDED
            )
        authenticate: Authenticate = anybody_on_this_machine if insecure else principals.authenticate()
        if source is not None and not insecure:
            authenticate = PrincipalsOfFile(authenticate, source)
        return create_gateway(
            saver,
            authenticate=authenticate,
            limits=self.limits,
            audit_key=None if self.audit_key is None else self.audit_key.get_secret_value().encode(),
        )


# How soon a change of the file is noticed.
_LOOK_SECONDS = 1.0


class PrincipalsOfFile:
    """Authenticates by the principals in a file, which is read again when it has changed."""

    def __init__(
        self,
        authenticate: Authenticate,
        source: str | os.PathLike[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with what authenticates by the principals that are in the file now."""
        self._authenticate = authenticate
        self._source = source
        self._clock = clock
        self._looked_at = clock()
        self._state = self._look()

    async def __call__(self, request: HTTPConnection) -> Principal | None:
        """Return the principal of a request; None if the file has none with its credentials."""
        if self._clock() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = self._clock()
            state = self._look()
            if state != self._state:
                self._state = state
                self._read()
        return await self._authenticate(request)

    def _look(self) -> object:
        try:
            found = os.stat(self._source)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _read(self) -> None:
        try:
            self._authenticate = load_options(self._source).principals.authenticate()
        except CheckpointerConfigurationError as error:
            # A mistake locks nobody out, and lets nobody in who was not.
            logger.error("the principals were not read again, and those before count: %s", error)
        else:
            logger.info("the principals were read again")


def load_options(source: str | os.PathLike[str] | None = None) -> GatewayOptions:
    """Read the settings from a YAML file with `gateway:`, or from the environment."""
    section = sources.read(source, _SUBJECT)
    variables = sources.Variables(os.environ)
    content = variables.fill({} if section.content is None else section.content)
    if variables.faults:
        raise sources.configuration_error(variables.faults, section.locate)
    try:
        return GatewayOptions.model_validate(content)
    except ValidationError as error:
        raise sources.configuration_error(sources.faults_of(error, GatewayOptions), section.locate) from None


def configured_gateway(source: str | os.PathLike[str] | None = None) -> Starlette:
    """Return the service of a configuration: its checkpointer, of type `dynamodb`, and its settings.

    Args:
        source: The path of a file with both, or None for the environment, as for `create_checkpointer`.

    Returns:
        An ASGI application; `uvicorn --factory langgraph.checkpoint.dynamodb.gateway:configured_gateway` runs it.

    Raises:
        CheckpointerConfigurationError: Something in the configuration cannot be used.
    """
    config = model.CheckpointerConfig.load(source)
    if not isinstance(config.config, DynamoDBOptions):
        raise CheckpointerConfigurationError(
            f"type {config.type} is configured, which has no table; the gateway needs dynamodb"
        )
    options = load_options(source)
    with config.saying_where():
        saver = make_saver(config.config)
    return options.gateway(saver, source=source)
