"""The lock of a thread: each request is one attempt, and says who holds it now."""

from __future__ import annotations

from typing import Any

from tests.gateway.through.test_values import Pair


def test_a_lock_is_held_until_it_is_released_or_lost() -> None:
    pair = Pair()

    def ask(action: str, token: str) -> Any:
        document = {"thread_id": "t", "action": action, "token": token.encode() * 8, "ttl_seconds": 60}
        return pair.ask("lock", **document)

    assert ask("acquire", "a")["held_until"]
    other = ask("acquire", "b")
    assert other["held_until"] is None
    assert other["free_in_seconds"] > 0
    assert ask("renew", "a")["held_until"]
    assert not ask("renew", "b")["held_until"]
    assert not ask("release", "a")["held_until"]
    assert ask("acquire", "b")["held_until"]
    assert not ask("renew", "a")["held_until"]
