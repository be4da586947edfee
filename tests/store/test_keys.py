"""Keys of memories: different places never share a key, and no key of a thread is one, or begins one."""

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langgraph.cache.dynamodb.entries import entry_key as cache_key
from langgraph.checkpoint.dynamodb._format import items, schema
from langgraph.checkpoint.dynamodb._format.labels import label_of, name_of, partition_labels
from langgraph.store.dynamodb import keys

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.text("/#%MNKPV25$", max_size=6)
labels = texts.filter(lambda label: label and "." not in label and "\0" not in label)
namespaces = st.lists(labels, min_size=1, max_size=4).map(tuple)
ROOT = Path(__file__).parents[2]


@given(namespaces, texts)
def test_an_address_is_read_back(namespace: tuple[str, ...], name: str) -> None:
    address = keys.address_of(namespace, name)
    assert keys.parse_address(address.item_key) == address
    assert keys.entry_partition(keys.entry_key(address.pk)) == address.pk
    vector = items.key(address.pk, keys.vector_sk(address, "r1", 7))
    assert keys.parse_vector(vector) == (address.sk, "r1")


@given(namespaces, texts, namespaces)
def test_a_prefix_finds_whole_labels(namespace: tuple[str, ...], name: str, prefix: tuple[str, ...]) -> None:
    address = keys.address_of(namespace, name)
    for kind, sk in ((keys.MEMORIES, address.sk), (keys.VECTORS, keys.vector_sk(address, "r", 0))):
        for wanted in (prefix, namespace[: len(prefix)]):
            start = keys.path_prefix(kind, wanted)
            same_partition = len(wanted) >= 2 and address.pk == keys.address_of(wanted, "").pk
            found = same_partition and sk.startswith(start)
            assert found == (len(wanted) >= 2 and namespace[: len(wanted)] == wanted)
            assert sk.startswith(start) == (start <= sk < keys.after(start))


@given(namespaces, texts, texts, texts)
def test_a_thread_never_reaches_a_memory(
    namespace: tuple[str, ...], name: str, thread: str, within: str
) -> None:
    for other in (thread, "/".join(namespace), f"{'/'.join(namespace)}/%M"):
        ours = [
            keys.address_of(namespace, name).pk,
            keys.entry_key(keys.address_of(namespace, name).pk)[schema.PARTITION_KEY]["S"],
        ]
        ours.append(cache_key((), (namespace, name))[schema.PARTITION_KEY]["S"])
        partition = items.partition_of(other, within)
        for pk in ours:
            # Not the same key, and not found by a scan for the partitions of a thread.
            assert pk != partition.pk
            assert not pk.startswith(partition.root)
            assert items.partition_of(*_ids(pk)).pk != pk
        assert partition_labels(partition.pk) is None
    assert len({*ours}) == len(ours)
    assert [partition_labels(pk) for pk in ours] == [namespace[:2], namespace[:1], namespace]
    assert partition_labels(cache_key((), ((), name))[schema.PARTITION_KEY]["S"]) == ()


def _ids(pk: str) -> tuple[str, str]:
    """Return the ids of the thread that a key would be of."""
    partition = items.parse_partition(pk)
    return partition.thread_id, partition.namespace


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,12}", fullmatch=True), namespaces, texts)
def test_the_policy_of_a_tenant_covers_its_memories_and_no_others(
    tenant: str, rest: tuple[str, ...], name: str
) -> None:
    template = (ROOT / "infra" / "tenant.yaml").read_text(encoding="utf-8")
    assert '!Sub "${Tenant}/*"' in template
    pattern = re.compile(re.escape(f"{tenant}/") + ".*", re.DOTALL)

    def leading_keys(namespace: tuple[str, ...]) -> list[Any]:
        address = keys.address_of(namespace, name)
        return [address.pk, keys.entry_key(address.pk)[schema.PARTITION_KEY]["S"]]

    if tenant != "langgraph":
        assert all(pattern.fullmatch(each) for each in leading_keys((label_of(tenant), *rest)))
    if rest[0] != label_of(tenant):
        assert not any(pattern.fullmatch(each) for each in leading_keys(rest))


names = (
    texts.filter(bool)
    | st.text("aE2.%\0", min_size=1, max_size=6)
    | st.sampled_from(["langgraph", "langgraph."])
)


@given(names, names)
def test_every_name_has_a_label_of_its_own(name: str, other: str) -> None:
    label = label_of(name)
    InMemoryStore().put((label,), "k", {})
    assert name_of(label) == name
    assert (label == label_of(other)) == (name == other)
    address = keys.address_of((label, "x", label), "k")
    assert keys.parse_address(address.item_key) == address
    assert partition_labels(address.pk) == (label, "x")
    assert (address.pk == keys.address_of((label_of(other), "x"), "k").pk) == (name == other)


def test_a_memory_sorts_before_those_in_namespaces_below_its_own() -> None:
    own, below = keys.address_of(("a", "b", "c"), "k").sk, keys.address_of(("a", "b", "c", "\1"), "k").sk
    assert own < keys.after(f"{keys.path_prefix(keys.MEMORIES, ('a', 'b', 'c'))}#") < below
    assert schema.SORT_KEY in keys.address_of(("a",), "k").item_key
