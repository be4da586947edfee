"""The async methods are made from the others: what is written by hand once cannot drift apart."""

from __future__ import annotations

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
