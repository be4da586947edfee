"""Types of other packages: registered by an entry point, and as good as those that come with this one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    acreate_checkpointer,
    create_checkpointer,
)
from langgraph.checkpoint.dynamodb.config import CheckpointerType, OptionError, Options


class ShelfOptions(Options):
    """What another package would declare."""

    label: str = Field(description="What is written on the shelf.")


class Shelf(InMemorySaver):
    """What another package would make."""

    def __init__(self, label: str) -> None:
        """Keep the label."""
        super().__init__()
        self.label = label


@contextmanager
def _open(options: ShelfOptions) -> Iterator[Shelf]:
    if options.label == "taken":
        raise OptionError("label", "is on another shelf; write another one")
    yield Shelf(options.label)


@asynccontextmanager
async def _aopen(options: ShelfOptions) -> AsyncIterator[Shelf]:
    with _open(options) as shelf:
        yield shelf


SHELF = CheckpointerType(ShelfOptions, _open, _aopen, install="shelf")
GROUP = "langgraph_dynamodb.checkpointers"


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Give what installs a package that registers a type: its name, the type's, and where that is."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(package: str, name: str, where: str) -> None:
        folder = tmp_path / f"{package.replace('-', '_')}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {where}\n")

    return install


@pytest.fixture
def shelf(register: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with the type `shelf`, and one with a type that is no better than a built-in one."""
    monkeypatch.setitem(sys.modules, "shelf_package", SimpleNamespace(SHELF=SHELF))
    register("shelf", "shelf", "shelf_package:SHELF")
    register("impostor", "memory", "shelf_package:SHELF")


def _error(section: dict[str, Any]) -> str:
    with pytest.raises(CheckpointerConfigurationError) as caught, create_checkpointer(section):
        pass
    return str(caught.value)


@pytest.mark.usefixtures("shelf")
async def test_a_registered_type_is_made_like_the_others() -> None:
    section = {"type": "shelf", "config": {"label": "A to D"}}
    with create_checkpointer(section) as saver:
        assert isinstance(saver, Shelf)
        assert saver.label == "A to D"
    async with acreate_checkpointer(section) as saver:
        assert isinstance(saver, Shelf)


@pytest.mark.usefixtures("shelf")
def test_its_options_are_checked_like_those_of_the_others() -> None:
    assert _error({"type": "shelf"}) == "config.label: is missing: what is written on the shelf."
    assert _error({"type": "shelf", "config": {"label": "taken"}}) == (
        "config.label: is on another shelf; write another one"
    )
    assert (
        _error({"type": "book"})
        == "type: is not a type of checkpointer; use one of memory, sqlite, postgres, dynamodb, http, shelf"
    )


@pytest.mark.usefixtures("shelf")
def test_a_type_of_this_package_cannot_be_replaced() -> None:
    with create_checkpointer({"type": "memory"}) as saver:
        assert type(saver) is InMemorySaver


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("no_such_module:TYPE", "which cannot be loaded: No module named 'no_such_module'"),
        ("os:NO_SUCH_TYPE", "which cannot be loaded: module 'os' has no attribute 'NO_SUCH_TYPE'"),
        (
            "os:path",
            "shelf is registered as an object that is not a CheckpointerType; let its entry point name a"
            " CheckpointerType",
        ),
    ],
)
def test_what_cannot_be_loaded(register: Callable[[str, str, str], None], where: str, says: str) -> None:
    register("shelf", "shelf", where)
    error = _error({"type": "shelf"})
    assert error.startswith("type: shelf is registered as ")
    assert error.endswith(says)


def test_two_packages_with_the_same_name(register: Callable[[str, str, str], None]) -> None:
    register("shelf-one", "shelf", "shelf_one:TYPE")
    register("shelf-two", "shelf", "shelf_two:TYPE")
    assert _error({"type": "shelf"}) == (
        "type: shelf is registered by several packages: shelf-one, shelf-two; remove all but one"
    )
