"""Rules for what an export hides: values by their paths, and texts by patterns.

A rule is the name of a pattern below, a regular expression between slashes, or a path of keys with dots between them.
A path holds wherever its keys follow each other, in any channel, input or pending write. Places in lists are ignored:
`account.key`, `messages.content`. A path does not look into texts; a pattern does.
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
    """A rule that hides values, either wholly or but for their shape."""

    name: str
    action: Action
    pattern: re.Pattern[str] | None
    path: Keys

    @property
    def mark(self) -> str:
        """The text that replaces a hidden value."""
        return f"[{self.action}: {self.name}]"


def parse_rule(text: str, action: Action) -> Rule:
    """Parse a rule.

    Raises:
        CheckpointerInputError: The text is not a rule.
    """
    if text in PATTERNS:
        return Rule(text, action, re.compile(PATTERNS[text], re.DOTALL), ())
    if len(text) > 2 and text[0] == text[-1] == "/":
        try:
            pattern = re.compile(text[1:-1])
        except re.error as error:
            msg = f"{text} is not a regular expression: {error}"
            raise CheckpointerInputError(msg) from error
        if pattern.match("") is not None:
            msg = f"{text} matches an empty text, and so every text; give a narrower expression"
            raise CheckpointerInputError(msg)
        return Rule(text, action, pattern, ())
    keys = tuple(text.removeprefix("values.").split("."))
    if not all(keys):
        msg = f"{text!r} is not a rule; give {', '.join(PATTERNS)}, a /regular expression/, or keys such as account.key"
        raise CheckpointerInputError(msg)
    return Rule(text, action, None, keys)


class Masks:
    """All rules of an export, and how many times each was applied."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        """Store the rules. Rules that leave out take precedence over rules that mask."""
        self.paths = [each for each in rules if each.pattern is None]
        self.patterns = sorted(
            (each for each in rules if each.pattern is not None), key=lambda each: each.action
        )
        self._rules = list(rules)
        self._times: Counter[Rule] = Counter()

    def at(self, keys: Keys) -> Rule | None:
        """Return the rule for the value that these keys lead to. A rule that leaves out takes precedence."""
        found = [each for each in self.paths if _leads_through(each.path, keys)]
        return min(found, key=lambda each: each.action, default=None)

    def count(self, rule: Rule) -> None:
        """Count that a rule was applied."""
        self._times[rule] += 1

    def text(self, text: str) -> tuple[str, Rule | None]:
        """Mask a text. Return it with the rule that was applied, or None."""
        used = None
        for rule in self.patterns:
            if rule.pattern is None or not rule.pattern.search(text):
                continue
            used = used or rule
            self.count(rule)
            if rule.action == "left out":
                return rule.mark, rule
            text = rule.pattern.sub(rule.mark.replace("\\", r"\\"), text)
        return text, used

    def finds(self, content: bytes) -> Rule | None:
        """Return the rule whose pattern matches bytes, decoded as text, or None."""
        text = content.decode(errors="replace")
        found = (each for each in self.patterns if each.pattern is not None and each.pattern.search(text))
        return next(found, None)

    def told(self) -> list[exported.Mask]:
        """Return the rules and their counts, for readers of the file."""
        return [
            exported.Mask(rule=each.name, action=each.action, times=self._times[each]) for each in self._rules
        ]


def _leads_through(path: Keys, keys: Keys) -> bool:
    return any(keys[at : at + len(path)] == path for at in range(len(keys) - len(path) + 1))


# Fields that describe the form of a document. Everything else may be somebody's text.
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
}


def without_patterns(part: Any, masks: Masks) -> Any:
    """Mask the other texts of a document too, such as keys, names and ids."""
    if not masks.patterns:
        return part
    if isinstance(part, str):
        return masks.text(part)[0]
    if isinstance(part, list):
        return [without_patterns(each, masks) for each in part]
    if not isinstance(part, dict):
        return part
    # The texts of nodes were masked when they were still whole.
    as_it_is = _FORM | {"text"} if "kind" in part else _FORM
    return {
        key: each if key in as_it_is and not isinstance(each, (dict, list)) else without_patterns(each, masks)
        for key, each in part.items()
    }
