"""Paths of labels: what is written is read back, and what they look like in a key."""

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerInputError
from langgraph.checkpoint.dynamodb._format import labels


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("acme", "acme"),
        ("a.b", "a%2Eb"),
        ("a\0%", "a%00%"),
        ("langgraph", "%6Canggraph"),
        ("langgraph2", "langgraph2"),
        ("a%2E%25%00%6C%2e%30", "a%252E%2525%2500%256C%2e%30"),
    ],
)
def test_a_name_has_a_label_that_langgraph_takes(name: str, label: str) -> None:
    assert labels.label_of(name) == label
    assert labels.name_of(label) == name


@pytest.mark.parametrize(
    ("parts", "path", "of_memories"),
    [
        ((), "", ""),
        (("a", "b"), "a/b/", "a/b/"),
        (("a/b",), "a%2Fb/", "a%2Fb/"),
        (("a%2Eb", "c#"), "a%252Eb/c%23/", "a.b/c%23/"),
    ],
)
def test_labels_are_read_back_from_their_path(parts: tuple[str, ...], path: str, of_memories: str) -> None:
    assert labels.label_path(parts) == path
    assert labels.parse_labels(path) == parts
    assert labels.memory_path(parts) == of_memories
    assert labels.parse_memory_labels(of_memories) == parts
    for mark in (labels.MEMORIES_MARK, labels.REGISTER_MARK):
        assert labels.partition_labels(of_memories + mark) == parts
    assert labels.partition_labels(path + labels.CACHE_MARK) == parts


@pytest.mark.parametrize("pk", ["a/b/", "a/%M#b", "a/%X#", "thread#namespace"])
def test_other_keys_have_no_labels(pk: str) -> None:
    assert labels.partition_labels(pk) is None


def test_a_dot_in_an_entry_of_the_cache_is_a_dot() -> None:
    assert labels.partition_labels(f"a.b/{labels.CACHE_MARK}") == ("a.b",)
    assert labels.partition_labels(f"a.b/{labels.MEMORIES_MARK}") == ("a%2Eb",)


def test_a_label_that_dynamodb_cannot_store_is_named() -> None:
    with pytest.raises(CheckpointerInputError, match=r"^namespace '.ud800' holds a lone surrogate"):
        labels.label_path(["\ud800"])
