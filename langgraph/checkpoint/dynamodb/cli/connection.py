"""Connection options: the command line's options override the configuration of a file or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph.checkpoint.dynamodb.config.dynamodb import DynamoDBOptions, make_saver
from langgraph.checkpoint.dynamodb.config.model import CheckpointerConfig
from langgraph.checkpoint.dynamodb.config.source_locations import Environment, SourceLocation
from langgraph.checkpoint.dynamodb.config.sources import CHECKPOINTER, Section, read
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

_TYPE = "dynamodb"


@dataclass(frozen=True)
class ConnectionOptions:
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
        section = self._section()
        content = section.content
        if isinstance(content, Mapping):
            content = self._under_options(content)
        config = CheckpointerConfig.model_validate(content, context=section.location)
        if not isinstance(config.config, DynamoDBOptions):
            msg = f"type {config.type} is configured, which has no table; give --table, or another --config"
            raise CheckpointerConfigurationError(msg)
        return config

    def _section(self) -> Section:
        if self.config is None and not any(name.startswith(Environment.prefix) for name in os.environ):
            if self.table_name is None:
                msg = (
                    "no table is named; give --table, or a configuration by --config or the environment"
                    f" ({Environment.prefix}CONFIG__TABLE_NAME)"
                )
                raise CheckpointerConfigurationError(msg)
            return Section({}, SourceLocation())
        # If the table is named by option, the file may configure the gateway alone.
        is_named = self.table_name is not None and self.config is not None
        return read(self.config, replace(CHECKPOINTER, wanted=None) if is_named else CHECKPOINTER)

    def _under_options(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration with the options applied. A table that is named makes it one of DynamoDB."""
        kind = content.get("type", _TYPE)
        if kind != _TYPE and self.table_name is None:
            return dict(content)
        configured = content.get("config") if kind == _TYPE else None
        over: dict[str, Any] = {
            "table_name": self.table_name,
            "endpoint_url": self.endpoint_url,
            "region_name": self.region_name,
        }
        if self.profile_name is not None:
            import boto3  # noqa: PLC0415 - it takes half a second, which `--help` need not.

            over["session"] = boto3.Session(profile_name=self.profile_name, region_name=self.region_name)
        given = {name: value for name, value in over.items() if value is not None}
        options = {**configured, **given} if isinstance(configured, Mapping) else configured or given
        return {"type": _TYPE, "config": options}


def open_saver(config: CheckpointerConfig) -> DynamoDBSaver:
    """Make the configured saver, as an agent would. Only a key in Secrets Manager takes a request."""
    with config.saying_where():
        return make_saver(config.config)
