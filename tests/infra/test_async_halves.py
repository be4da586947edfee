"""The async methods are made from the others: what is written by hand once cannot drift apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import async_halves

MODULE = '''
class Saver:
    def get(self, key: str) -> int:
        """Read what `put` has stored; `key` names it."""
        return self.runner.run(operation(key))

    def list(self) -> Iterator[int]:
        """List everything."""
        return self.runner.stream(operations())

    def put(self, key: str) -> int:
        """Store; twice."""
        # Each is awaited.
        self._check(key)
        return self._store(key) + self.get(key)

    async def aput(self, key: str) -> int:
        """Differ."""
        return 1

    def name(self) -> str:
        """Make no request."""
        return "x"
'''

EXPECTED = '''
class Saver:
    def get(self, key: str) -> int:
        """Read what `put` has stored; `key` names it."""
        return self.runner.run(operation(key))

    async def aget(self, key: str) -> int:
        """Read what `aput` has stored; `key` names it."""
        return await self.runner.arun(operation(key))

    def list(self) -> Iterator[int]:
        """List everything."""
        return self.runner.stream(operations())

    def alist(self) -> AsyncIterator[int]:
        """List everything."""
        return self.runner.astream(operations())

    def put(self, key: str) -> int:
        """Store; twice."""
        # Each is awaited.
        self._check(key)
        return self._store(key) + self.get(key)

    async def aput(self, key: str) -> int:
        """Store; twice."""
        # Each is awaited.
        self._check(key)
        return await self._astore(key) + await self.aget(key)

    def name(self) -> str:
        """Make no request."""
        return "x"
'''


def test_an_async_method_is_the_other_one_that_waits() -> None:
    made = async_halves.generated(MODULE, {"Saver": {"get", "_store"}})
    assert made.strip() == EXPECTED.strip()
    assert async_halves.generated(made, {"Saver": {"get", "_store"}}) == made


def test_the_files_are_as_the_tool_writes_them() -> None:
    for path, text in async_halves.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make format`"


def test_a_difference_ends_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert async_halves.main(["--check"]) == 0
    path = Path(async_halves.__file__)
    monkeypatch.setattr(async_halves, "files", lambda: {path: "another text"})
    assert async_halves.main(["--check"]) == 1
    assert "tools/async_halves.py: async methods differ from the others" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") != "another text"
