"""The async methods are made from the others: what is written by hand once cannot drift apart."""

from pathlib import Path

from langgraph.checkpoint.dynamodb import base_saver
from tools.async_halves import generated, names_of


def test_async_methods_that_were_changed_by_hand_are_made_anew() -> None:
    """`make lint` compares all that there are with what they are made from."""
    text = Path(base_saver.__file__).read_text(encoding="utf-8")
    drifted = text.replace("return await self.runner.arun(", "return await self.other(")
    assert drifted != text
    assert generated(drifted, names_of(base_saver)) == text
