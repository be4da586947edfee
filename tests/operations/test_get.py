"""`get_tuple`: which checkpoint is found, and what it asks for again when others change the thread meanwhile."""

from __future__ import annotations

from tests.support.harness import Harness, Process


def test_a_put_and_a_prune_come_between_the_requests_of_a_reader(harness: Harness, process: Process) -> None:
    """Writes come before their head, so that the newest checkpoint's items need not be on the first page."""
    harness.run(process.put("1", {"text": "oldest"}))
    harness.run(process.put("2", {"text": "older"}, "1"))
    for each in ("2", "3"):
        harness.run(process.put_writes(each, [("text", each)]))
    read = harness.begin(harness.process().read())
    read.until(lambda call: call.method == "query")
    read.go_on()
    harness.run(process.put("3", {"text": "newest"}, "2"))
    harness.run(harness.process().prune())
    found = read.finish()
    assert found is not None
    assert found.checkpoint["channel_values"] == {"text": "newest"}
