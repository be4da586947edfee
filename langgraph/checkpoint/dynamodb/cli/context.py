"""The context of a command: the table that options and configuration name, its saver, output, and questions."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .._format import items, pricing
from .._format.inert import inert
from .._operations.overview import extent
from .._runtime.failures import has_no_response, not_dynamodb
from .._runtime.steps import Op, Stream
from .._runtime.storage import Storage
from ..config import fields, model
from ..config.dynamodb import DynamoDBOptions, DynamoDBStoreOptions, TableOptions, make_saver, make_store
from ..config.serde import made_serde
from ..config.sources import CHECKPOINTER, STORE, Key, Locate, Section, dotted, read
from ..errors import CheckpointerConfigurationError
from ..saver import DynamoDBSaver
from . import CommandError, Exit
from .output import CENT, Output, counted, priced, sized

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.store.dynamodb import DynamoDBStore

_TYPE = "dynamodb"
# The options of the command line that override those of a configuration, by their names there.
_OPTIONS = {"table_name": "--table", "endpoint_url": "--endpoint-url", "region_name": "--region"}
Config = TypeVar("Config", bound=model.ComponentConfig)

# Names in the library's remedies, and the options of the command line for them.
_IN_OPTIONS = {
    "region_name": "--region",
    "endpoint_url": "--endpoint-url",
    "table_name": "--table",
    "session=": "--profile",
    "call setup()": "run `langgraph-dynamodb setup`",
}
_NAMED = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, _IN_OPTIONS)) + r")=?(?!\w)")
T = TypeVar("T")
_CONTENT_TYPE = "application/x-amz-json"


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

    def configuration(self) -> model.CheckpointerConfig:
        """Return the configuration of a saver on DynamoDB.

        Raises:
            CheckpointerConfigurationError: No table is named, or something that is configured cannot be used.
        """
        return self._checked(model.CheckpointerConfig, self._section())

    def store_configuration(self) -> model.StoreConfig | None:
        """Return the configuration of a store on DynamoDB, or None if none is configured.

        Raises:
            CheckpointerConfigurationError: Something that is configured cannot be used.
        """
        section = read(self.config, replace(STORE, is_required=False))
        return self._checked(model.StoreConfig, section) if section.content else None

    def _checked(self, kind: type[Config], section: Section) -> Config:
        content = section.content
        if isinstance(content, Mapping):
            content = self._under_options(content)
        config = kind.model_validate(content, context=_options_over(section.locate, self._given()))
        if not isinstance(config.config, TableOptions):
            what = "" if kind is model.CheckpointerConfig else f" for the {kind.subject.name}"
            msg = f"type {config.type} is configured{what}, which has no table; give --table, or another --config"
            raise CheckpointerConfigurationError(msg)
        return config

    def _section(self) -> Section:
        prefix = CHECKPOINTER.prefix
        if self.config is None and not any(name.startswith(prefix) for name in os.environ):
            if self.table_name is None:
                raise CheckpointerConfigurationError(
                    "no table is named; give --table, or a configuration by --config or the environment"
                    f" ({prefix}CONFIG__TABLE_NAME)"
                )
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


@dataclass
class CommandContext:
    """The state that every command works with. The saver is opened on first use, and closed with the command."""

    connection: ConnectionArguments
    output: Output
    yes: bool = False
    dry_run: bool = False
    has_dry_run: bool = False
    parallel: int = 4
    """How many threads to process at a time."""
    opened: ExitStack = field(default_factory=ExitStack)
    """Closes what was opened, when the command ends."""

    @property
    def table_name(self) -> str:
        """The table's name. If the configuration cannot be read, the name that was given."""
        config = self.__dict__.get("_config")
        return self.connection.table_name or "" if config is None else str(config.config.table_name)

    @cached_property
    def options(self) -> DynamoDBOptions:
        """The options of the saver."""
        options: DynamoDBOptions = self._config.config
        return options

    @cached_property
    def _config(self) -> model.CheckpointerConfig:
        return self.connection.configuration()

    @cached_property
    def saver(self) -> DynamoDBSaver:
        """The saver that changes threads, configured as an agent's. Its endpoint has answered."""
        self._check_endpoint(self.client, self.options.table_name)
        return self.configured_saver

    @cached_property
    def configured_saver(self) -> DynamoDBSaver:
        """The same saver, whether or not its endpoint answers. Only a key in Secrets Manager takes a request."""
        with self._config.saying_where():
            saver = make_saver(self._config.config)
        self.opened.callback(saver.close)
        return saver

    @cached_property
    def store(self) -> DynamoDBStore:
        """The store, without a model that embeds texts. Its endpoint has answered."""
        return self._open_store(embeds=False)

    @cached_property
    def embedding_store(self) -> DynamoDBStore:
        """The store as an agent has it, with its model."""
        return self._open_store(embeds=True)

    @property
    def store_embeds(self) -> bool:
        """Whether the configured store embeds texts."""
        return getattr(self._store_config.config, "index", None) is not None

    @cached_property
    def _store_config(self) -> model.ComponentConfig:
        """The configuration of the store; that of the saver if no store is configured."""
        return self.connection.store_configuration() or self._config

    def _open_store(self, *, embeds: bool) -> DynamoDBStore:
        """Open a store, or one with the table and the key of the saver's, that makes no object that a value names."""
        given: TableOptions = self._store_config.config
        names = given.model_fields_set & DynamoDBStoreOptions.model_fields.keys()
        options = DynamoDBStoreOptions.model_validate({name: getattr(given, name) for name in names})
        with self._store_config.saying_where():
            session = fields.made_object("session", options.session)
            serde = made_serde(options.serde, options.encryption_key, session) or JsonPlusSerializer()
            changed: dict[str, Any] = {"serde": inert(serde), "encryption_key": None, "session": session}
            store = make_store(options.model_copy(update=changed if embeds else {**changed, "index": None}))
        self.opened.callback(store.close)
        self._check_endpoint(store.transport.client(), store.storage.table.name)
        return store

    def _check_endpoint(self, client: DynamoDBClient, table_name: str) -> None:
        """Make one request to the endpoint: the saver's own attempts would go on for a minute.

        Raises:
            CommandError: Another server than DynamoDB answers.
            Exception: The error that botocore raises if nobody answers.
        """
        item_key = items.key("langgraph-dynamodb#", "?")
        try:
            response = client.get_item(TableName=table_name, Key=item_key)
        except Exception as error:
            # An error that is a response is for the command to explain, which knows what it asked for.
            if has_no_response(error):
                raise
            return
        # botocore reads any text with status 200 as a response without an item.
        found = response["ResponseMetadata"]["HTTPHeaders"].get("content-type", "no content type")
        if not found.startswith(_CONTENT_TYPE):
            said = f"with {found} from {client.meta.endpoint_url}"
            raise CommandError(Exit.CONFIGURATION, in_options(not_dynamodb(table_name, said)))

    @property
    def custom_endpoint(self) -> str | None:
        """The endpoint, once the command has a client, unless it is AWS's own for the region."""
        meta = self.client.meta
        return None if meta.region_name in meta.endpoint_url else str(meta.endpoint_url)

    @cached_property
    def read_only_saver(self) -> DynamoDBSaver:
        """The same saver for commands that only read: it makes no object and runs no code that a value names."""
        read_only_saver = copy.copy(self.saver)
        read_only_saver.serde = inert(self.saver.serde)
        return read_only_saver

    @property
    def storage(self) -> Storage:
        """The storage that operations below the saver take."""
        return self.saver.storage

    @property
    def client(self) -> DynamoDBClient:
        """The client that the saver sends its requests with. It sends each of them once."""
        client: DynamoDBClient = self.configured_saver.transport.client()
        return client

    def run(self, operation: Op[T]) -> T:
        """Run an operation below the saver."""
        return self.saver.runner.run(operation)

    def stream(self, operation: Stream[T]) -> Iterator[T]:
        """Run a stream below the saver."""
        return self.saver.runner.stream(operation)

    # Confirmation

    def confirm(self, question: str) -> None:
        """Ask before something is changed, and end the command unless the user agrees. A dry run changes nothing."""
        if self.yes or self.dry_run:
            return
        if not self.output.is_watched:
            tried = ", or --dry-run to see what would happen" if self.has_dry_run else ""
            raise CommandError(
                Exit.NOT_CONFIRMED, f"{question} Nobody can answer here; give --yes to agree{tried}"
            )
        if not self.output.ask(question):
            raise CommandError(Exit.NOT_CONFIRMED, "nothing was changed")

    # Scans

    def announce_scan(self, then: str = "") -> int | None:
        """Announce a scan that costs a cent or more. Return how many items there are; None if that is not known."""
        found = self.run(extent(self.storage))
        if found is None:
            self.output.note(
                f"Scanning table {self.options.table_name}; its size is not known without"
                f" dynamodb:DescribeTable. A scan costs 0.5 read units for each 4 KB stored.{then}"
            )
            return None
        units = pricing.read_units(found.bytes)
        if units * pricing.READ_UNIT_DOLLARS >= CENT:
            self.output.note(
                f"Scanning table {self.options.table_name}: up to {counted(found.items, 'item')}, {sized(found.bytes)},"
                f" {priced(units, 'read unit', pricing.READ_UNIT_DOLLARS)}"
                f" (as DynamoDB last counted, which it does every six hours).{then}"
            )
        return found.items
