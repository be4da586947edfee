"""`${NAME}` and `${NAME:-default}` in the values of a configuration; `$${` stands for `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .faults import Fault, Key

_REFERENCE = re.compile(
    r"\$(?:(?P<escaped>\$\{)|\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<broken>\{))"
)


@dataclass(frozen=True)
class Variables:
    """Fills in variables, and collects mistakes in references to them."""

    variables: Mapping[str, str]
    faults: list[Fault] = field(default_factory=list)

    def fill(self, value: Any, key: Key = ()) -> Any:
        """Return a value with its variables filled in, at any depth."""
        if isinstance(value, str):
            return _REFERENCE.sub(lambda match: self._text(match, key), value)
        if isinstance(value, Mapping):
            return {name: self.fill(each, (*key, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each, (*key, number)) for number, each in enumerate(value)]
        return value

    def _text(self, match: re.Match[str], key: Key) -> str:
        if match["escaped"]:
            return "${"
        if match["broken"]:
            says = (
                "has a `${` that does not begin a variable; write ${NAME} or ${NAME:-default}, or $${ for the"
                " text ${"
            )
            self.faults.append(Fault(key, says))
            return ""
        # As in a shell, the default also replaces an empty variable.
        text = self.variables.get(match["name"])
        if match["default"] is not None:
            return text or match["default"]
        if text is None:
            says = f"needs the environment variable {match['name']}, which is not set; set it, or write a default as "
            self.faults.append(Fault(key, says + f"${{{match['name']}:-default}}"))
        return text or ""
