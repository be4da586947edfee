"""What can be observed of a conversation, written so that the same conversation on two savers gives the same."""

import itertools
import pprint
import re
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
_SAVER = re.compile(r"<langgraph\.checkpoint\.[^>]*>")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")


def canonical(value: Any) -> str:
    """Write a value as text that does not depend on when and where it was made."""
    numbers = itertools.count()
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        if match[0] not in names:
            names[match[0]] = f"<{next(numbers)}>"
        return names[match[0]]

    text = _SAVER.sub("<saver>", pprint.pformat(value, width=200))
    return _TIME.sub("<time>", _ID.sub(name, text))


def described(found: CheckpointTuple) -> dict[str, Any]:
    """All of a stored checkpoint; of its versions only the counter, which savers dress up differently."""

    def counts(versions: dict[str, Any]) -> dict[str, int]:
        return {channel: int(str(version).split(".")[0]) for channel, version in versions.items()}

    checkpoint = found.checkpoint
    return {
        **found._asdict(),
        "checkpoint": {
            **checkpoint,
            "channel_versions": counts(checkpoint["channel_versions"]),
            "versions_seen": {node: counts(seen) for node, seen in checkpoint["versions_seen"].items()},
        },
    }
