"""The context of a command: the saver on its table, its output, and the questions to the user."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from .._format.inert import inert
from .._format.items import key
from .._format.pricing import READ_UNIT_DOLLARS, read_units
from .._operations.overview import Extent, extent
from .._runtime.failures import has_no_response, not_dynamodb
from .._runtime.steps import Op, Stream
from .._runtime.storage import Storage
from .._runtime.transport_owner import TransportOwner
from ..config.dynamodb import DynamoDBOptions
from ..config.model import CheckpointerConfig, ComponentConfig
from ..saver import DynamoDBSaver
from .connection import ConnectionArguments, in_options, open_saver, open_store
from .outcome import CommandError, Exit
from .output import Output
from .values import CENT, counted, priced, sized

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.store.dynamodb import DynamoDBStore

T = TypeVar("T")

_CONTENT_TYPE = "application/x-amz-json"


@dataclass
class CommandContext:
    """The state that every command works with. The saver is opened on first use, and closed with the command."""

    connection: ConnectionArguments
    output: Output
    _opened: list[TransportOwner] = field(default_factory=list)

    def __enter__(self) -> CommandContext:
        """Begin the command."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        for each in self._opened:
            each.close()

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
    def _config(self) -> CheckpointerConfig:
        return self.connection.configuration()

    @cached_property
    def saver(self) -> DynamoDBSaver:
        """The saver that changes threads, configured as an agent's. Its endpoint has answered."""
        self._check_endpoint(self.client, self.options.table_name)
        return self.configured_saver

    @cached_property
    def configured_saver(self) -> DynamoDBSaver:
        """The same saver, whether or not its endpoint answers."""
        saver = open_saver(self._config)
        self._opened.append(saver)
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
    def _store_config(self) -> ComponentConfig:
        """The configuration of the store; that of the saver if no store is configured."""
        return self.connection.store_configuration() or self._config

    def _open_store(self, *, embeds: bool) -> DynamoDBStore:
        store = open_store(self._store_config, embeds=embeds)
        self._opened.append(store)
        self._check_endpoint(store.transport.client(), store.storage.table.name)
        return store

    def _check_endpoint(self, client: DynamoDBClient, table_name: str) -> None:
        """Make one request to the endpoint: the saver's own attempts would go on for a minute.

        Raises:
            CommandError: Another server than DynamoDB answers.
            Exception: The error that botocore raises if nobody answers.
        """
        item_key = key("langgraph-dynamodb#", "?")
        try:
            response = client.get_item(TableName=table_name, Key=item_key)
        except Exception as error:
            # An error that is an answer is for the command to explain, which knows what it asked for.
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

    def confirm(self, question: str, *, yes: bool, has_dry_run: bool = True) -> None:
        """Ask before something is changed, and end the command unless the user agrees."""
        if yes:
            return
        if not self.output.is_watched:
            tried = ", or --dry-run to see what would happen" if has_dry_run else ""
            raise CommandError(
                Exit.NOT_CONFIRMED, f"{question} Nobody can answer here; give --yes to agree{tried}"
            )
        if not self.output.ask(question):
            raise CommandError(Exit.NOT_CONFIRMED, "nothing was changed")

    # Scans

    def announce_scan(self, then: str = "") -> Extent | None:
        """Announce a scan that costs a cent or more. Return the table's size, or None if it cannot be known."""
        found = self.run(extent(self.storage))
        if found is None:
            self.output.note(
                f"Scanning table {self.options.table_name}; its size is not known without"
                f" dynamodb:DescribeTable. A scan costs 0.5 read units for each 4 KB stored.{then}"
            )
            return None
        units = read_units(found.bytes)
        if units * READ_UNIT_DOLLARS >= CENT:
            self.output.note(
                f"Scanning table {self.options.table_name}: up to {counted(found.items, 'item')}, {sized(found.bytes)},"
                f" {priced(units, 'read unit', READ_UNIT_DOLLARS)}"
                f" (as DynamoDB last counted, which it does every six hours).{then}"
            )
        return found
