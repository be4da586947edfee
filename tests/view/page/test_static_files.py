"""The page's own files: nothing that is shown is ever parsed, and nothing is asked of anybody else."""

import re
from pathlib import Path

import pytest

from langgraph.checkpoint.dynamodb.view import STATIC

FILES = sorted(STATIC.iterdir())
# What makes elements, or runs a program, of a text.
PARSED = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|srcdoc"
    r"|\beval\(|new Function|javascript:|import\("
)
ELSEWHERE = re.compile(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[\w-]+\.\w")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_is_parsed_and_nobody_else_is_asked(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not PARSED.findall(text)
    assert not ELSEWHERE.findall(text)


def test_the_document_has_neither_scripts_nor_styles_of_its_own() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="app.js">']
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


def test_every_file_belongs_to_the_page() -> None:
    texts = {file.name: file.read_text(encoding="utf-8") for file in FILES}
    named = {name for text in texts.values() for name in re.findall(r'"(?:\./)?([\w-]+\.(?:js|css))"', text)}
    assert named == texts.keys() - {"index.html"}
