"""Finding where something comes from: what changed, and where a text appeared first."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.view import thread_view as search_module
from tests.support import graphs
from tests.support.checkpoints import Conversation, noise, store, thread_config
from tests.view.conftest import Asked

pytestmark = pytest.mark.engines("dynamodb-local")


def searched(asked: Asked, thread: str, text: str) -> list[Any]:
    """All places where a text appeared, however many requests it takes."""
    pages = [*asked.pages("search", "cursor", thread=thread, text=text)]
    assert pages[-1]["looked_at"] == pages[-1]["of"]
    return [hit for page in pages for hit in page["hits"]]


# What changed


def test_changes_are_against_the_parent(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    first = talk.put(text="x", large=noise(50_000))["configurable"]["checkpoint_id"]
    talk.put(text="y", new=1)
    at = asked.newest(thread)
    found = asked.get("changes", **at)
    assert found["parent"] == first
    told = [(each["channel"], each["kind"], each["before_bytes"]) for each in found["channels"]]
    assert told == [("new", "added", None), ("text", "changed", 1)]
    assert found["unchanged"] == ["large"]
    [change] = found["channels"][1]["changes"]
    assert (change["before"]["text"], change["after"]["text"]) == ("x", "y")
    del talk.values["new"], talk.versions["new"]
    talk.put(text="y")
    asked.get("thread", thread=thread)
    [gone] = asked.get("changes", **asked.newest(thread))["channels"]
    assert (gone["channel"], gone["kind"], gone["after_bytes"]) == ("new", "gone", None)
    alone = asked.get("changes", thread=thread, ns="", checkpoint=first)
    assert (alone["parent"], [each["kind"] for each in alone["channels"]]) == (None, ["added", "added"])


def test_a_channel_that_was_written_to_and_is_the_same_did_not_change(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    """A small state lies in one item. When the state has grown, the same value has segments."""
    talk = Conversation(saver, thread)
    talk.put(text=noise(7_000), number=1)
    talk.put(text=noise(7_000), number=1.0, other=noise(60_000, 1))
    found = asked.get("changes", **asked.newest(thread))
    assert found["unchanged"] == ["text"]
    assert [each["channel"] for each in found["channels"]] == ["number", "other"]


def test_very_many_changes_are_counted(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    talk.put(log=[])
    talk.put(log=list(range(500)))
    [channel] = asked.get("changes", **asked.newest(thread))["channels"]
    assert len(channel["changes"]) + channel["more"] == 500


# Search


def test_a_text_is_found_where_it_first_appeared_in_subgraphs_too(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    graphs.subgraphs(None)(saver).invoke({"log": ["begun"]}, thread_config(thread))
    first, *_ = hits = searched(asked, thread, "DEEP 3")
    assert first["node"] == "deep"
    assert "inner" in first["ns"]
    assert (first["path"], first["excerpt"], first["at"]) == (["writes", 0, 0], "deep 3", 0)
    assert [each["path"][:2] for each in hits] == [["writes", 0], ["values", "log"]]
    assert searched(asked, thread, "never said") == []


def test_a_text_that_stays_is_found_once_and_one_that_comes_again_again(
    asked: Asked, saver: DynamoDBSaver, thread: str
) -> None:
    talk = Conversation(saver, thread)
    first = talk.put(log=["the price is 412 euros", "x"])["configurable"]["checkpoint_id"]
    talk.put(log=["the price is 412 euros", "x", "y"])
    talk.put(other=2)
    again = talk.put(log=["the price is 412 euros", "x", "y", "was it 412?"])["configurable"]["checkpoint_id"]
    found = [(each["checkpoint"], each["path"]) for each in searched(asked, thread, "412")]
    assert found == [(first, ["values", "log", 0]), (again, ["values", "log", 3])]


def test_an_excerpt_has_a_little_around_the_text(asked: Asked, saver: DynamoDBSaver, thread: str) -> None:
    text = "\N{GRINNING FACE}" * 100 + "\u00dcbung" + "y" * 1000
    values = {"text": text, "key": {"\u00fcbung": 1}, "raw": "\u00fcbung".encode()}
    store(saver, thread_config(thread), "1", values)
    # Whatever their case; bytes are no text.
    key, value = searched(asked, thread, "\u00fcbung")
    assert key["path"] == ["values", "key", "\u00fcbung"]
    assert value["at"] == 120
    assert value["excerpt"].startswith("\N{GRINNING FACE}" * 60 + "\u00dcbungy")
    assert len(value["excerpt"]) < 300


def test_a_long_search_takes_several_requests(
    asked: Asked, saver: DynamoDBSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Conversation(saver, thread)
    for number in range(7):
        talk.put(log=[f"entry {number}"])
    for name, limit in (("_LOOKED_AT_MAX", 3), ("_BYTES_MAX", 20), ("_HITS_MAX", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(search_module, name, limit)
            assert asked.get("search", thread=thread, text="entry")["looked_at"] < 7
            assert len(searched(asked, thread, "entry")) == 7
