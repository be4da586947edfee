"""Connection options: the command line's options override the configuration of a file or the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .._format.inert import inert
from ..config.dynamodb import DynamoDBStoreOptions, TableOptions, make_saver, make_store
from ..config.faults import Key, Locate, dotted
from ..config.fields import made_object
from ..config.model import CheckpointerConfig, ComponentConfig, StoreConfig
from ..config.serde import made_serde
from ..config.sources import CHECKPOINTER, STORE, Section, read
from ..errors import CheckpointerConfigurationError
from ..saver import DynamoDBSaver

if TYPE_CHECKING:
    from langgraph.store.dynamodb import DynamoDBStore

_TYPE = "dynamodb"
# The options of the command line that override those of a configuration, by their names there.
_OPTIONS = {"table_name": "--table", "endpoint_url": "--endpoint-url", "region_name": "--region"}
Config = TypeVar("Config", bound=ComponentConfig)

# Names in the library's remedies, and the options of the command line for them.
_IN_OPTIONS = {
    "region_name": "--region",
    "endpoint_url": "--endpoint-url",
    "table_name": "--table",
    "session=": "--profile",
    "call setup()": "run `langgraph-dynamodb setup`",
}
_NAMED = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, _IN_OPTIONS)) + r")=?(?!\w)")


def in_options(remedy: str) -> str:
    """Translate a remedy of the library into the options of the command line."""
    return _NAMED.sub(lambda match: _IN_OPTIONS[match[1]], remedy)


def _options_over(locate: Locate, given: Collection[str]) -> Locate:
    """Return what locates the keys of a configuration, some of which the command line overrides."""
    options: dict[Key, str] = {("config", name): _OPTIONS[name] for name in given}
    return lambda key: options.get(key[:2]) or locate(key)


@dataclass(frozen=True)
class ConnectionArguments:
    """The options that every command has for its table. The configuration supplies those that are not given."""

    table_name: str | None = None
    endpoint_url: str | None = None
    region_name: str | None = None
    profile_name: str | None = None
    config: Path | None = None

    def configuration(self) -> CheckpointerConfig:
        """Return the configuration of a saver on DynamoDB.

        Raises:
            CheckpointerConfigurationError: No table is named, or something that is configured cannot be used.
        """
        return self._checked(CheckpointerConfig, self._section())

    def store_configuration(self) -> StoreConfig | None:
        """Return the configuration of a store on DynamoDB, or None if none is configured.

        Raises:
            CheckpointerConfigurationError: Something that is configured cannot be used.
        """
        section = read(self.config, replace(STORE, is_required=False))
        return self._checked(StoreConfig, section) if section.content else None

    def _checked(self, kind: type[Config], section: Section) -> Config:
        content = section.content
        if isinstance(content, Mapping):
            content = self._under_options(content)
        config = kind.model_validate(content, context=_options_over(section.locate, self._given()))
        if not isinstance(config.config, TableOptions):
            what = "" if kind is CheckpointerConfig else f" for the {kind.subject.name}"
            msg = f"type {config.type} is configured{what}, which has no table; give --table, or another --config"
            raise CheckpointerConfigurationError(msg)
        return config

    def _section(self) -> Section:
        prefix = CHECKPOINTER.prefix
        if self.config is None and not any(name.startswith(prefix) for name in os.environ):
            if self.table_name is None:
                msg = (
                    "no table is named; give --table, or a configuration by --config or the environment"
                    f" ({prefix}CONFIG__TABLE_NAME)"
                )
                raise CheckpointerConfigurationError(msg)
            return Section({}, dotted)
        # If the table is named by option, the file may configure the gateway alone.
        is_named = self.table_name is not None and self.config is not None
        return read(self.config, replace(CHECKPOINTER, is_required=False) if is_named else CHECKPOINTER)

    def _given(self) -> dict[str, Any]:
        """Return what the command line says, by the names of a configuration."""
        return {name: value for name in _OPTIONS if (value := getattr(self, name)) is not None}

    def _under_options(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration with the options applied. A table that is named makes it one of DynamoDB."""
        kind = content.get("type", _TYPE)
        if kind != _TYPE and self.table_name is None:
            return dict(content)
        configured = content.get("config") if kind == _TYPE else None
        given: dict[str, Any] = self._given()
        if self.profile_name is not None:
            import boto3  # noqa: PLC0415 - it takes half a second, which `--help` need not.

            given["session"] = boto3.Session(profile_name=self.profile_name, region_name=self.region_name)
        options = {**configured, **given} if isinstance(configured, Mapping) else configured or given
        return {"type": _TYPE, "config": options}


def open_saver(config: CheckpointerConfig) -> DynamoDBSaver:
    """Make the configured saver, as an agent would. Only a key in Secrets Manager takes a request."""
    with config.saying_where():
        return make_saver(config.config)


def open_store(config: ComponentConfig, *, embeds: bool) -> DynamoDBStore:
    """Make the store of a configuration, or one with the table and the key of a saver's.

    Args:
        config: A `StoreConfig`, or a `CheckpointerConfig` if no store is configured.
        embeds: Whether the store embeds texts, as the agent's does. Reading and deleting need no model.

    Returns:
        A store that makes no object and runs no code that a value names.
    """
    given: TableOptions = config.config
    names = given.model_fields_set & DynamoDBStoreOptions.model_fields.keys()
    options = DynamoDBStoreOptions.model_validate({name: getattr(given, name) for name in names})
    with config.saying_where():
        session = made_object("session", options.session)
        serde = made_serde(options.serde, options.encryption_key, session) or JsonPlusSerializer()
        changed: dict[str, Any] = {"serde": inert(serde), "encryption_key": None, "session": session}
        return make_store(options.model_copy(update=changed if embeds else {**changed, "index": None}))
