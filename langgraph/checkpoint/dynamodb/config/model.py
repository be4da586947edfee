"""`CheckpointerConfig`, `StoreConfig` and `CacheConfig`: the type of a component, and its options."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core.core_schema import ValidationInfo
from typing_extensions import Self

from .._runtime.fork import without_forks
from ..errors import CheckpointerInputError
from . import fields, sources
from .sources import Fault, Locate, configuration_error, did_you_mean, dotted, faults_of

# Everything that a configuration may be read from.
Source: TypeAlias = "ComponentConfig | Mapping[str, Any] | str | os.PathLike[str] | None"

_DEFAULT_TYPE = "memory"
_OWN_TYPES = ("dynamodb", "http")


class ComponentConfig(BaseModel):
    """A component of an agent and its options, checked as a whole. Its `repr` shows no secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    subject: ClassVar[sources.Subject]
    types: ClassVar[tuple[str, ...]] = ("memory", "sqlite", "postgres", "dynamodb", "http")

    type: str = Field(default=_DEFAULT_TYPE, description="What keeps the data, such as memory or dynamodb.")
    config: Any = Field(default_factory=dict, description="The options of that type.")

    # pydantic would make a method of a function that is a default itself.
    _locate: Locate = PrivateAttr(default_factory=lambda: dotted)

    def __eq__(self, other: object) -> bool:
        """Compare types and options, wherever they were read from."""
        return isinstance(other, type(self)) and (self.type, self.config) == (other.type, other.config)

    @classmethod
    def find_type(cls, name: str) -> fields.ComponentType:
        """Load a type: our own have modules of their names, and LangGraph's share one."""
        with without_forks():
            module = import_module(f".{name if name in _OWN_TYPES else 'backends'}", __package__)
        found: fields.ComponentType = module.TYPES[name, cls.subject.name]
        return found

    @classmethod
    def load(cls, source: Source = None) -> Self:
        """Read and check a configuration without opening anything.

        Args:
            source: A dict, or the path of a YAML file with `checkpointer:` in it. Everything else in the file is
                ignored. None is the environment: `LANGGRAPH_CHECKPOINTER_TYPE`,
                `LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME`, and so on. A store and a cache have sections and variables
                of their own names. A configuration is returned as it is.

        Returns:
            The configuration, with `${NAME}` and `${NAME:-default}` filled in from the environment.

        Raises:
            CheckpointerConfigurationError: The source cannot be read, or something in it is unknown, missing or of the
                wrong type.
        """
        if isinstance(source, cls):
            return source
        section = sources.read(source, cls.subject)
        return cls.model_validate(section.content, context=section.locate)

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Check type, options and the rest, and report all mistakes at once."""
        locate = info.context or dotted
        if isinstance(data, cls):
            return data
        variables = sources.Variables(os.environ)
        data = variables.fill(data)
        if variables.faults:
            raise configuration_error(variables.faults, locate)
        faults: list[Fault] = []
        if isinstance(data, dict):
            data, faults = _with_options(data, cls)
        try:
            checked = handler(data)
        except ValidationError as error:
            faults = [*faults_of(error, cls), *faults]
        if faults:
            raise configuration_error(faults, locate) from None
        checked._locate = locate  # noqa: SLF001 - it is this class's own.
        return checked

    @contextmanager
    def saying_where(self) -> Iterator[None]:
        """Add the location in the source to errors about an unusable option or a missing package.

        Raises:
            CheckpointerConfigurationError: For an `OptionError`, what a constructor refuses, or an `ImportError`.
        """
        try:
            yield
        except fields.OptionError as error:
            raise configuration_error([Fault(("config", error.option), error.says)], self._locate) from error
        except CheckpointerInputError as error:
            # Most messages of constructors begin with the option's name.
            name, _, says = str(error).partition(" ")
            is_option = name in type(self.config).model_fields
            fault = Fault(("config", name), says) if is_option else Fault(("config",), str(error))
            raise configuration_error([fault], self._locate) from error
        except ImportError as error:
            install = f"pip install {self.find_type(self.type).install}"
            says = f"{self.type} needs what is not installed here ({error}): {install}"
            raise configuration_error([Fault(("type",), says)], self._locate) from error


class CheckpointerConfig(ComponentConfig):
    """An agent's checkpointer and its options, checked as a whole. Its `repr` shows no secret.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import CheckpointerConfig, create_checkpointer

        config = CheckpointerConfig(type="dynamodb", config={"table_name": "langgraph-checkpoints"})
        with create_checkpointer(config) as checkpointer:
            graph = builder.compile(checkpointer=checkpointer)
        ```

    Attributes:
        type: `memory`, `sqlite`, `postgres`, `dynamodb` or `http`.
        config: The options of that type, as a dict; once checked, they are an object with an attribute for each.

    Raises:
        CheckpointerConfigurationError: Something is unknown, missing or of the wrong type; the message names all of it.
    """

    subject = sources.CHECKPOINTER


class StoreConfig(ComponentConfig):
    """An agent's store and its options, checked as a whole. Its `repr` shows no secret.

    Attributes:
        type: `memory`, `sqlite`, `postgres`, `dynamodb` or `http`.
        config: The options of that type, as for `CheckpointerConfig`.

    Raises:
        CheckpointerConfigurationError: Something is unknown, missing or of the wrong type; the message names all of it.
    """

    subject = sources.STORE


class CacheConfig(ComponentConfig):
    """An agent's node cache and its options, checked as a whole. Its `repr` shows no secret.

    Attributes:
        type: `memory`, `sqlite`, `dynamodb` or `http`.
        config: The options of that type, as for `CheckpointerConfig`.

    Raises:
        CheckpointerConfigurationError: Something is unknown, missing or of the wrong type; the message names all of it.
    """

    subject = sources.CACHE
    types = ("memory", "sqlite", "dynamodb", "http")


def _with_options(data: dict[str, Any], kind: type[ComponentConfig]) -> tuple[dict[str, Any], list[Fault]]:
    """Replace the given options by the checked ones of their type, and return the mistakes in them."""
    name = data.get("type", _DEFAULT_TYPE)
    if not isinstance(name, str):
        return data, []
    names = ", ".join(kind.types)
    if name not in kind.types:
        meant = did_you_mean(name.lower(), kind.types)
        return data, [Fault(("type",), f"is not a type of {kind.subject.name}; {meant}use one of {names}")]
    options = kind.find_type(name).options
    misplaced = {key: data[key] for key in data.keys() & options.model_fields}
    faults = [Fault((key,), f"is an option of {name}; write it under `config:`") for key in sorted(misplaced)]
    data = {key: value for key, value in data.items() if key not in misplaced}
    # A `config:` in YAML with nothing below it is None.
    given = {} if data.get("config") is None else data["config"]
    if isinstance(given, dict):
        given = misplaced | given
    try:
        return data | {"config": options.model_validate(given)}, faults
    except ValidationError as error:
        faults += faults_of(error, options, ("config",))
        if "type" not in data:
            faults.append(Fault((), f"has no type, so it is {name}; use one of {names}"))
        return data, faults
