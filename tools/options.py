"""`python -m tools.options`: copies the text of each option from the configuration's models to where people read it.

The models in `config/` have the only text of each option. It goes into the docstrings of the classes and the tables
of `docs/configuration.md`. `--check` writes nothing, and fails if a text differs from its copy.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import CacheConfig, CheckpointerConfig, DynamoDBSaver, StoreConfig
from langgraph.checkpoint.dynamodb.config.model import ComponentConfig
from langgraph.checkpoint.dynamodb.config.sources import first_sentence
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.store.dynamodb import DynamoDBStore
from tools.generated import ROOT, write_or_check

PAGE = ROOT / "docs" / "configuration.md"
CLASSES: Mapping[str, tuple[type, ...]] = {
    "dynamodb": (DynamoDBSaver, DynamoDBStore, DynamoDBCache),
    "http": (HttpCheckpointSaver, HttpStore, HttpCache),
}
COMPONENTS: Mapping[str, type[ComponentConfig]] = {
    "saver": CheckpointerConfig,
    "store": StoreConfig,
    "cache": CacheConfig,
}
# Where the page, or another one, says more about an option.
LINKS = {
    "auth": "gateway.md#tenants-and-rights",
    "bound_to": "move-table.md#restore",
    "allow_unencrypted": "encrypt.md#encrypt-threads-that-exist",
    "encryption_key": "#encryption",
    "index": "memory.md",
    "on_event": "observing.md",
    "owner_from": "threads.md",
    "owner_key": "threads.md#privacy",
    "retry_seconds": "deploy.md#time-outs",
    "share_equal_pieces": "encrypt.md#what-shows-under-encryption",
    "thread_prefix": "gateway.md#tenants-and-rights",
}
_COMMAND = "python -m tools.options"
_ENTRY = re.compile(r"^        (\w+): (.*(?:\n            .*)*)", re.MULTILINE)


def model_of(kind: type) -> type[BaseModel]:
    """Return the model of a class's options in a configuration."""
    for name, kinds in CLASSES.items():
        if kind in kinds:
            return [*COMPONENTS.values()][kinds.index(kind)].find_type(name).options
    raise LookupError(kind)


def parameters(kind: type) -> dict[str, Any]:
    """Return the options of a class's constructor with their defaults; `None` for those that it hands on."""
    found: dict[str, Any] = {}
    for each in inspect.signature(kind, eval_str=True).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            (handed_on,) = get_args(each.annotation)
            found |= dict.fromkeys(handed_on.__annotations__)
        else:
            found[each.name] = each.default
    return found


def docstring_arguments(kind: type, written: str) -> str:
    """Return the `Args` of a class's docstring: each option with its text, in the order of the model.

    Args:
        kind: The class.
        written: The arguments as they are. An option that no configuration has keeps its text.
    """
    fields = model_of(kind).model_fields
    own = {name: " ".join(text.split()) for name, text in _ENTRY.findall(written)}
    wanted = parameters(kind)
    lines = []
    for name in [
        *(each for each in fields if each in wanted),
        *(each for each in wanted if each not in fields),
    ]:
        text = str(fields[name].description) if name in fields else own.get(name)
        if text is None:
            msg = f"{kind.__name__} has the option {name}, which has no text: give it a field in config/"
            raise LookupError(msg)
        lines += textwrap.wrap(
            f"{name}: {text}",
            120,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines) + "\n"


def _with_docstring(kind: type, source: str) -> str:
    """Return a module's source with the docstring of one of its classes as it should be."""
    pattern = rf"(\nclass {kind.__name__}\b.*?\n    Args:\n)(.*?)(\n    (?:Raises|Attributes):)"
    found = re.search(pattern, source, re.DOTALL)
    if found is None:
        msg = f"the docstring of {kind.__name__} has no Args before its Raises"
        raise LookupError(msg)
    return source[: found.start(2)] + docstring_arguments(kind, found[2]) + source[found.end(2) :]


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and value % (1 << 20) == 0:
        return f"{value >> 30} GiB" if value % (1 << 30) == 0 else f"{value >> 20} MiB"
    return (
        f"`{value}`" if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    )


def _only(defaults: Mapping[str, str], components: Sequence[str]) -> str:
    """Return which components have an option; nothing if all have."""
    return "" if [*defaults] == [*components] else f" ({', '.join(defaults)})"


def _table(name: str, above: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the table of a type's options.

    Args:
        name: The type.
        above: What the tables above have, by names and texts; those of this one are added.
    """
    components = [component for component, config in COMPONENTS.items() if name in config.types]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for component in components:
        for option, field in COMPONENTS[component].find_type(name).options.model_fields.items():
            rows.setdefault((option, first_sentence(field.description).removesuffix(".")), {})[component] = (
                _default(field)
            )
    new = [row for row in rows if row not in above]
    shared = [row for row in rows if row in above]
    above.update(new)
    if new:
        yield "| option | default | what it is |"
        yield "|---|---|---|"
    names = [*dict.fromkeys(option for option, _ in rows)]
    for option, text in sorted(new, key=lambda each: names.index(each[0])):
        defaults = rows[option, text]
        named = f"[`{option}`]({LINKS[option]})" if option in LINKS else f"`{option}`"
        shown = "; ".join(dict.fromkeys(each for each in defaults.values() if each))
        yield f"| {named}{_only(defaults, components)} | {shown} | {text} |"
    if shared:
        yield from [""] if new else []
        listed = ", ".join(f"`{option}`" + _only(rows[option, text], components) for option, text in shared)
        yield from textwrap.wrap(f"{'Also, as above' if new else 'As above'}: {listed}.", 100)


def _with_tables(page: str) -> str:
    """Return the page with the table between each pair of markers as it should be."""
    above = set[tuple[str, str]]()

    def table(found: re.Match[str]) -> str:
        rows = "\n".join(_table(found[2], above))
        return f"{found[1]}\n{rows}\n\n{found[3]}"

    return re.sub(r"(<!-- options: (\w+) -->\n).*?(<!-- end -->)", table, page, flags=re.DOTALL)


def files() -> dict[Path, str]:
    """Return each file as it should be."""
    found = {PAGE: _with_tables(PAGE.read_text(encoding="utf-8"))}
    for kinds in CLASSES.values():
        for kind in kinds:
            path = Path(str(inspect.getsourcefile(kind)))
            source = found.get(path) or path.read_text(encoding="utf-8")
            found[path] = _with_docstring(kind, source)
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the files, or say which of them would change."""
    description = __doc__.partition("\n")[0]
    return write_or_check(_COMMAND, description, "the texts of options differ from config/", files, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
