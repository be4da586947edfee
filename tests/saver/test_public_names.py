"""What other programs may rely on: the exported names, the constructor, and LangGraph's whole interface."""

import inspect
from importlib import metadata

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

import langgraph.checkpoint.dynamodb as package
from langgraph.checkpoint.dynamodb import CheckpointerError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._operations.setup import TableOwner
from langgraph.checkpoint.dynamodb._runtime.drivers import TransportOwner
from langgraph.checkpoint.dynamodb.base_saver import TableSaver
from langgraph.checkpoint.dynamodb.locks import ThreadLocks

EXPORTED = {
    "CacheConfig",
    "CheckpointCorruptionError",
    "CheckpointFormatError",
    "CheckpointNotFoundError",
    "CheckpointSerializationError",
    "CheckpointerConfig",
    "CheckpointerConfigurationError",
    "CheckpointerError",
    "CheckpointerInputError",
    "CheckpointerUnavailableError",
    "DynamoDBSaver",
    "OwnerDeletion",
    "RunSummary",
    "StoreConfig",
    "ThreadBusyError",
    "ThreadLockLostError",
    "ThreadPage",
    "ThreadSummary",
    "__version__",
    "create_cache",
    "create_checkpointer",
    "create_store",
    "open_cache",
    "open_checkpointer",
    "open_store",
}
# What is public inside the package only.
INSIDE = {"holder", "runner", "storage", "storage_with"}
# What the base class makes from other methods; whatever else it has is ours to write.
INHERITED = {"config_specs", "get", "aget", "with_allowlist"}


def _public_names(*kinds: type) -> set[str]:
    names = {name for kind in kinds for name in vars(kind) if not name.startswith("_")}
    return names - INSIDE - {"serde"}


# `HttpCheckpointSaver` has most of it too.
OURS = _public_names(DynamoDBSaver, TableOwner, TableSaver, ThreadLocks, TransportOwner)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert package.__version__ == metadata.version("langgraph-dynamodb")


def test_the_exported_names_are_these() -> None:
    assert set(package.__all__) == EXPORTED
    assert all(hasattr(package, name) for name in EXPORTED)


@pytest.mark.parametrize("name", sorted(name for name in EXPORTED if name.endswith("Error")))
def test_every_error_can_be_caught_by_the_base_class(name: str) -> None:
    assert issubclass(getattr(package, name), CheckpointerError)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("CheckpointerInputError", ValueError),
        ("CheckpointSerializationError", TypeError),
        ("CheckpointNotFoundError", LookupError),
    ],
)
def test_errors_with_a_builtin_kin_can_be_caught_as_it(name: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(package, name), builtin)


def test_every_method_of_the_base_class_is_overridden() -> None:
    assert _public_names(BaseCheckpointSaver) - OURS == INHERITED


@pytest.mark.parametrize("name", sorted(_public_names(BaseCheckpointSaver) - INHERITED))
def test_every_method_takes_what_the_base_class_method_takes(name: str) -> None:
    inherited = inspect.signature(getattr(BaseCheckpointSaver, name)).parameters
    own = inspect.signature(getattr(DynamoDBSaver, name)).parameters
    assert [(each.name, each.kind) for each in own.values()][: len(inherited)] == [
        (each.name, each.kind) for each in inherited.values()
    ]
    assert all(own[each].default == inherited[each].default for each in inherited)
    assert all(each.default is not inspect.Parameter.empty for each in list(own.values())[len(inherited) :])
