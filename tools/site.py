"""A hook of mkdocs: adds the pages that are not in `docs/`, and leads links out of `docs/` to where they are.

README, CHANGELOG, CONTRIBUTING and SECURITY lie beside `docs/`; `reference.py` generates the reference. A file of the
repository that is no page becomes a link to the repository, or its name alone while the repository has no address.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.reference import PAGES

ROOT = Path(__file__).parent.parent
# Pages outside of `docs/`, with their addresses in the site.
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
DECISIONS = "decisions/index.md"
# What a search shows after the pages that explain.
SHOWN_LATER = ("decisions/", "reference/", "wire.md", *(uri for uri in BESIDE.values() if uri != "index.md"))
# Its answers are links, which count after the pages that they lead to.
QUESTIONS = "questions.md"
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def decisions() -> str:
    """Return the list of decisions, by their titles."""
    lines = ["# Decisions\n", "This page is for developers who ask why something is as it is.\n"]
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def added() -> Iterator[tuple[str, str]]:
    """Yield the pages that are not in `docs/`: their addresses in the site, and their Markdown."""
    for path, uri in BESIDE.items():
        yield uri, (ROOT / path).read_text(encoding="utf-8")
    yield DECISIONS, decisions()
    for uri, lines in PAGES.items():
        yield uri, "\n".join(lines()) + "\n"


def source_of(uri: str) -> str:
    """Return the path in the repository of a page, by its address in the site."""
    return next((path for path, each in BESIDE.items() if each == uri), f"docs/{uri}")


def address_of(path: str) -> str | None:
    """Return the address in the site of a file in the repository, or `None` if it is no part of the site."""
    if path == "docs/decisions":
        return DECISIONS
    return BESIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)


def with_site_links(markdown: str, uri: str, repo_url: str | None) -> str:
    """Return a page with links that lead to the same files in the site.

    Args:
        markdown: The page as it is in the repository.
        uri: Its address in the site.
        repo_url: The address of the repository, if it has one.

    Raises:
        PluginError: A link leads to a file that is not there.
    """
    source = source_of(uri)

    def rewritten(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        path, hash_sign, fragment = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        address = address_of(path)
        if address:
            return (
                f"{mark}[{text}]({posixpath.relpath(address, posixpath.dirname(uri))}{hash_sign}{fragment})"
            )
        if not (ROOT / path).exists():
            msg = f"{source} links to {target}, which is not there"
            raise PluginError(msg)
        return f"[{text}]({repo_url}/blob/main/{path})" if repo_url else text

    parts = _FENCED.split(markdown)
    return "".join(part if _FENCED.fullmatch(part) else _LINK.sub(rewritten, part) for part in parts)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs/`."""
    for uri, text in added():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page to where the files are in the site, and tell the search how much the page counts."""
    del files
    if page.file.src_uri.startswith(SHOWN_LATER):
        page.meta["search"] = {"boost": 0.1}
    if page.file.src_uri == QUESTIONS:
        page.meta["search"] = {"boost": 0.5}
    return with_site_links(markdown, page.file.src_uri, config.repo_url or None)
