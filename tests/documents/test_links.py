"""No relative link of a document leads to a file or a heading that is not there."""

from __future__ import annotations

import pytest

from tests.support.documents import ROOT, anchors, links, read
from tools.prose import pages

PAGES = [str(page.relative_to(ROOT)) for page in pages()]


def broken(page: str, document: str) -> list[str]:
    """Return the relative links of a document that lead nowhere."""
    return [each for each in links(document) if "://" not in each and not _resolves(page, each)]


def _resolves(page: str, link: str) -> bool:
    path, _, fragment = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    if not target.exists():
        return False
    return not fragment or fragment in anchors(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_resolves(page: str) -> None:
    assert broken(page, read(page)) == []


def test_a_broken_link_is_found() -> None:
    document = "[a](docs/none.md) [b](docs/design.md#none) [c](#none) [d](https://example.com/none)"
    assert broken("README.md", document) == ["docs/none.md", "docs/design.md#none", "#none"]
    assert "README.md" in PAGES
    assert "docs/using.md" in PAGES
