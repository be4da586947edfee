"""The page as one file, with its styles, modules and documents inside, so that it needs no server.

Modules become functions, each after those that it imports. That works for the few forms of `import` and `export` that
the page's modules use. Any other form is an error, which a test would find.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async )?(?:function\*?|class|const|let) +(\w+)|(?:async )?function\* (\w+))", re.MULTILINE
)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_STYLE = re.compile(r' *<link rel="stylesheet" href="([\w-]+\.css)" ?/?>\n')
_SCRIPT = re.compile(r' *<script type="module" src="([\w-]+)\.js"></script>\n')
_CHARSET = re.compile(r' *<meta charset="utf-8" ?/?>\n')


class BundleError(Exception):
    """A file of the page has a form that cannot be bundled."""


def bundled(folder: Path, document: Mapping[str, Any]) -> str:
    """Return the page as one HTML document.

    Args:
        folder: The folder of the page's files.
        document: The export that the page shows.

    Raises:
        BundleError: A file cannot be bundled.
    """
    page = (folder / "index.html").read_text(encoding="utf-8")
    entry = _SCRIPT.search(page)
    if entry is None or _CHARSET.search(page) is None:
        msg = "index.html has no module, or does not begin with its charset"
        raise BundleError(msg)
    styles = "".join((folder / each[1]).read_text(encoding="utf-8") for each in _STYLE.finditer(page))
    script = modules(folder, entry[1])
    for content in (styles, script):
        if re.search("</(?:script|style)", content, re.IGNORECASE):
            msg = "a style or a module has the end of its own element in it"
            raise BundleError(msg)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(styles)}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    head = (
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{styles}</style>\n"
    )
    tail = f'<script type="application/json" id="export">{data}</script>\n<script type="module">{script}</script>\n'
    page = _SCRIPT.sub("", _STYLE.sub("", page))
    page = _CHARSET.sub(lambda _: head, page, count=1)
    return page.replace("</body>", f"{tail}</body>")


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}"


def modules(folder: Path, entry: str) -> str:
    """Return a module, and all that it imports, as one script."""
    done: dict[str, str] = {}

    def add(name: str, within: tuple[str, ...]) -> None:
        if name in within:
            msg = f"the modules {' → '.join((*within, name))} import each other"
            raise BundleError(msg)
        if name in done:
            return
        source = (folder / f"{name}.js").read_text(encoding="utf-8")
        for match in _IMPORT.finditer(source):
            add(match[2], (*within, name))
        done[name] = _as_function(name, source)

    add(entry, ())
    return "".join(done.values())


def _as_function(name: str, source: str) -> str:
    """Return a module as a function that is called at once and returns the module's exports."""
    exported = [match[1] or match[2] for match in _EXPORT.finditer(source)]
    body = _EXPORT.sub("", _IMPORT.sub(_taken, source))
    left = _LEFT.search(body)
    if left is not None:
        msg = f"{name}.js has an import or export of another form: {left[0]}"
        raise BundleError(msg)
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();\n"


def _taken(match: re.Match[str]) -> str:
    names = ", ".join(each.strip().replace(" as ", ": ") for each in match[1].split(",") if each.strip())
    return f"const {{ {names} }} = {_variable(match[2])};\n"


def _variable(name: str) -> str:
    return f"module_{name.replace('-', '_')}"
