"""The site: its own pages, its links out of `docs/`, and a build that is strict and asks nobody."""

import re
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

from langgraph.checkpoint.dynamodb import errors
from tools.reference import PACKAGES, PAGES, error_classes, public_names
from tools.site import added, with_site_links

# Pages may name other places in links; nothing is loaded from there.
LOADED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(https?:[^"'\s>]+)""")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(added())


@pytest.mark.search
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {
        address
        for page in site.rglob("*.html")
        for address in LOADED.findall(page.read_text(encoding="utf-8"))
    }
    assert loaded == set()


@pytest.mark.search
def test_every_page_can_be_searched_for(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert all(f'"{uri.removesuffix(".md")}/"' in index for uri in PAGES)


@pytest.mark.search
def test_every_picture_has_a_text_alternative(site: Path) -> None:
    pictures = [
        each for page in site.rglob("*.html") for each in re.findall(r"<img[^>]*>", page.read_text("utf-8"))
    ]
    assert pictures
    assert [each for each in pictures if not re.search(r'alt="[^"]{10,}"', each)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_api_page_has_every_public_name(package: str, pages: dict[str, str]) -> None:
    found = set(re.findall(r"^::: (\S+)$", pages["reference/api.md"], re.MULTILINE))
    on_another_page = {f"{errors.__name__}.{each.__name__}" for each in error_classes()}
    assert set(public_names(package).values()) <= found | on_another_page


def test_every_error_has_a_cause_and_a_remedy(pages: dict[str, str]) -> None:
    for each in error_classes():
        (row,) = re.findall(rf"^\| `{each.__name__}` \|.*$", pages["reference/errors.md"], re.MULTILINE)
        cells = row.strip("| ").split(" | ")
        assert cells[-3].endswith(".")
        assert cells[-2].endswith(".")


def test_a_file_that_is_no_page_is_named_until_the_repository_has_an_address() -> None:
    text = "[`infra/table.yaml`](../infra/table.yaml)\n```\n[`x`](../none)\n```\n"
    assert with_site_links(text, "cost.md", None) == "`infra/table.yaml`\n```\n[`x`](../none)\n```\n"
    assert "(https://example.com/x/blob/main/infra/table.yaml)" in with_site_links(
        text, "cost.md", "https://example.com/x"
    )


def test_a_link_to_a_file_that_is_not_there_ends_the_build() -> None:
    with pytest.raises(PluginError, match=r"docs/cost\.md links to \.\./none\.yaml, which is not there"):
        with_site_links("[a](../none.yaml)", "cost.md", None)
