"""A thread as one HTML file: the page, with its styles, its modules and the thread's documents in it.

Its content security policy lets it run these modules and load nothing.
"""

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator
from pathlib import PurePath
from typing import Any

from .._runtime.steps import Op
from ..errors import CheckpointerInputError, CheckpointNotFoundError
from . import STATIC, documents, thread_view, tree
from .nodes import CHARACTERS_MAX, NODES_MAX, Room, Shower
from .state import changes, pending, state

_TEXT_MAX = 256 * 1024
_PARTS_MAX = 1000
# Nobody can ask a file for more.
_TIMES = 64
# Smaller parts are not worth a reference.
_PART_CHARACTERS = 200
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w-]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_LINK = re.compile(r'<link rel="stylesheet" href="([\w-]+\.css)" />')
_SCRIPT = re.compile(r'<script type="module" src="([\w-]+)\.js"></script>')


def page_file(session: thread_view.Session, thread_id: str, shows: Collection[str] | None) -> str:
    """Return a thread as an HTML document.

    Args:
        session: The session that reads the thread.
        thread_id: The thread.
        shows: The channels whose values are in the file; of others it has types, names and sizes. None for all.

    Raises:
        CheckpointNotFoundError: The thread has no checkpoint.
        CheckpointerInputError: No checkpoint has a channel.
    """
    with session.opened(thread_id) as thread:
        found = session.run(_documents(thread, shows))
    if not any(each["rows"] for each in found["tree"].values()):
        msg = f"table {session.storage.table.name} has no checkpoint of thread {thread_id!r}"
        raise CheckpointNotFoundError(msg)
    _check_names(found, shows or ())
    start = documents.Start(table=session.storage.table.name, thread=thread_id)
    return _page({"start": start, **found})


def _check_names(found: dict[str, Any], shows: Collection[str]) -> None:
    states = [state for of_namespace in found["state"].values() for state in of_namespace.values()]
    names = {channel["name"] for state in states for channel in state["channels"]}
    missing = sorted(set(shows) - names)
    if missing:
        msg = f"no checkpoint has a channel {missing[0]!r}; give some of {', '.join(sorted(names))}"
        raise CheckpointerInputError(msg)


def _documents(thread: thread_view.ThreadView, shows: Collection[str] | None) -> Op[dict[str, Any]]:
    """Return the documents of a thread by their names, namespaces and checkpoints."""

    def shower() -> Shower:
        room = Room(_TIMES * NODES_MAX, _TIMES * CHARACTERS_MAX)
        return Shower(room, text_max=_TEXT_MAX, parts_max=_PARTS_MAX, shows=shows)

    about = yield from thread_view.thread_document(thread, shower())
    makers: dict[str, Any] = {"state": state, "changes": changes, "pending": pending}
    found: dict[str, Any] = {"thread": about, "tree": {}, **{kind: {} for kind in makers}}
    for namespace in (yield from thread.namespaces()):
        name = namespace.partition.namespace
        yield from namespace.read_to_end()
        rows = namespace.rows
        found["tree"][name] = yield from tree.tree(namespace, None, len(rows), shows)
        for kind, make in makers.items():
            found[kind][name] = {}
            for each in rows:
                found[kind][name][each.checkpoint_id] = yield from make(namespace, each, shower())
    return found


def _page(found: Any) -> str:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    style = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in _LINK.findall(page))
    (start,) = _SCRIPT.findall(page)
    script = "const modules = {};\n" + "\n".join(_modules(start, set()))
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />\n    <style>{style}</style>\n'
        f'    <script type="application/json" id="data">{_data(found)}</script>\n'
        f'    <script type="module">{script}</script>\n  </head>'
    )
    return _SCRIPT.sub("", _LINK.sub("", page)).replace("</head>", head)


def _modules(name: str, known: set[str]) -> Iterator[str]:
    """Yield a module and those that it imports, each after what it imports."""
    if name in known:
        return
    known.add(name)
    text = (STATIC / PurePath(name).with_suffix(".js")).read_text(encoding="utf-8")
    for _, other in _IMPORT.findall(text):
        yield from _modules(other, known)
    exported = ", ".join(name for _, name in _EXPORT.findall(text))
    own = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = modules.\2;", text))
    yield f"modules.{name} = (() => {{\n{own}return {{ {exported} }};\n}})();"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(found: Any) -> str:
    """Return documents as JSON that may stand in HTML. Equal parts, such as messages of many steps, are there once."""
    places: dict[str, int] = {}

    def packed(value: Any) -> Any:
        if isinstance(value, dict):
            inner: Any = {key: packed(each) for key, each in value.items()}
        elif isinstance(value, list):
            inner = [packed(each) for each in value]
        else:
            return value
        text = json.dumps(inner, allow_nan=False, separators=(",", ":"))
        return {"=": places.setdefault(text, len(places))} if len(text) > _PART_CHARACTERS else inner

    whole = json.dumps(packed(found), allow_nan=False, separators=(",", ":"))
    return f'{{"parts":[{",".join(places)}],"documents":{whole}}}'.replace("<", "\\u003c")
