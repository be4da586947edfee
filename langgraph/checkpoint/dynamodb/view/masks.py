"""What an export does not show: values by where they are, and texts by what they look like.

A rule is the name of a pattern below, a regular expression between slashes, or a path of keys with dots between them.
A path holds wherever its keys follow each other, in whatever channel, input or pending write, and places in lists do
not count: `account.key`, `messages.content`. It does not look into texts; a pattern does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.view import exported
from langgraph.checkpoint.dynamodb.view.nodes import Keys

Action: TypeAlias = Literal["masked", "left out"]

PATTERNS = {
    "keys": (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
        r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
        r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"
        r"|\bAIza[0-9A-Za-z_-]{30,}"
        r"|(?i:(?:\b|_)(?:api|secret|access|private)(?:[-_ ]?access)?[-_ ]?key\b[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{8,}"
    ),
    "tokens": (
        r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"
        r"|(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"
        r"|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-)[A-Za-z0-9_-]{10,}"
        r"|(?i:(?:\b|_)(?:token|password|passwd|secret)\b[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{6,}"
    ),
    "mail": r"[^\s@<>\"'(),:;\[\]\\]+@[^\s@<>\"'(),:;\[\]\\]+\.[^\s@<>\"'(),:;\[\]\\.]{2,}",
}


@dataclass(frozen=True)
class Rule:
    """What is not to be shown, and whether its shape is."""

    name: str
    action: Action
    pattern: re.Pattern[str] | None
    path: Keys

    @property
    def mark(self) -> str:
        """What stands in the place of what is not shown."""
        return f"[{self.action}: {self.name}]"


def parse_rule(text: str, action: Action) -> Rule:
    """Read a rule.

    Raises:
        CheckpointerInputError: It is none.
    """
    if text in PATTERNS:
        return Rule(text, action, re.compile(PATTERNS[text], re.DOTALL), ())
    if len(text) > 2 and text[0] == text[-1] == "/":
        try:
            pattern = re.compile(text[1:-1])
        except re.error as error:
            msg = f"{text} is no regular expression: {error}"
            raise CheckpointerInputError(msg) from error
        if pattern.match("") is not None:
            msg = f"{text} is found in every text; give an expression that does not match nothing at all"
            raise CheckpointerInputError(msg)
        return Rule(text, action, pattern, ())
    keys = tuple(text.removeprefix("values.").split("."))
    if not all(keys):
        msg = f"{text!r} is no rule; give {', '.join(PATTERNS)}, a /regular expression/, or keys such as account.key"
        raise CheckpointerInputError(msg)
    return Rule(text, action, None, keys)


class Masks:
    """All rules of an export, and how many times each was used."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        """Take the rules; what one leaves out, no other one has to mask."""
        self._paths = [each for each in rules if each.pattern is None]
        self._patterns = sorted(
            (each for each in rules if each.pattern is not None), key=lambda each: each.action
        )
        self._rules = list(rules)
        self._times: Counter[Rule] = Counter()

    @property
    def has_paths(self) -> bool:
        """Whether it counts where a value is."""
        return bool(self._paths)

    @property
    def has_patterns(self) -> bool:
        """Whether it counts what a text looks like."""
        return bool(self._patterns)

    def at(self, keys: Keys) -> Rule | None:
        """The rule that holds for what these keys lead to; one that leaves out goes first."""
        found = [each for each in self._paths if _leads_through(each.path, keys)]
        return min(found, key=lambda each: each.action, default=None)

    def count(self, rule: Rule) -> None:
        """Note that a rule was used."""
        self._times[rule] += 1

    def text(self, text: str) -> tuple[str, Rule | None]:
        """A text without what the patterns find, and the rule that was used, if one was."""
        used = None
        for rule in self._patterns:
            if rule.pattern is None or not rule.pattern.search(text):
                continue
            used = used or rule
            self.count(rule)
            if rule.action == "left out":
                return rule.mark, rule
            text = rule.pattern.sub(rule.mark.replace("\\", r"\\"), text)
        return text, used

    def finds(self, content: bytes) -> Rule | None:
        """The rule for bytes that have, as text, what a pattern finds."""
        text = content.decode(errors="replace")
        found = (each for each in self._patterns if each.pattern is not None and each.pattern.search(text))
        return next(found, None)

    def told(self) -> list[exported.Mask]:
        """What was done, for whoever reads the file."""
        return [
            exported.Mask(rule=each.name, action=each.action, times=self._times[each]) for each in self._rules
        ]


def _leads_through(path: Keys, keys: Keys) -> bool:
    return any(keys[at : at + len(path)] == path for at in range(len(keys) - len(path) + 1))


# What says of which form a part of a document is; everything else may be somebody's text.
_FORM = {
    "$",
    "action",
    "expires_at",
    "kind",
    "made_at",
    "masked",
    "rule",
    "serialized_as",
    "source",
    "stored_at",
    "version",
}


def without_patterns(part: Any, masks: Masks) -> Any:
    """A document whose other texts, such as keys, names and ids, are without what the patterns find as well."""
    if not masks.has_patterns:
        return part
    if isinstance(part, str):
        return masks.text(part)[0]
    if isinstance(part, list):
        return [without_patterns(each, masks) for each in part]
    if not isinstance(part, dict):
        return part
    # Of nodes the texts were looked at when they were whole.
    as_it_is = _FORM | {"text"} if "kind" in part else _FORM
    return {
        key: each if key in as_it_is and not isinstance(each, (dict, list)) else without_patterns(each, masks)
        for key, each in part.items()
    }
