"""`delete_owner`: which threads and memories go, and what may still be there, with the reason."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._operations import delete_owner as module
from langgraph.checkpoint.dynamodb._operations.delete_owner import (
    UNREADABLE,
    DeletedThreads,
    OwnerDeletion,
    OwnerMemories,
    delete_owner,
)
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.threads import set_thread
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.support.checkpoints import thread_config
from tests.support.harness import ENCRYPTED, Harness, Run, asks, removes_thread


class NoStore:
    """A store without memories."""

    def delete_namespace(self, namespace_prefix: Sequence[str]) -> int:
        """Find none."""
        return 0

    async def adelete_namespace(self, namespace_prefix: Sequence[str]) -> int:
        """Find none."""
        return 0


def _storage(harness: Harness, **options: Any) -> Storage:
    """A process that remembers nothing, whose puts name owners."""
    return replace(harness.process().storage, **{"owner_from": "user_id", **options})


def _store(harness: Harness, storage: Storage, owner: str, *threads: str) -> None:
    process = replace(harness.process(), storage=storage)
    for thread in threads:
        harness.run(process.put("1", {"x": thread}, thread=thread, user_id=owner))


def _threads(harness: Harness) -> set[str]:
    """The threads that have checkpoints."""
    return {
        item["PK"]["S"].split("#")[0] for item in harness.model.items() if item["SK"]["S"].startswith("C#")
    }


def _deleting(harness: Harness, **options: Any) -> Run[DeletedThreads]:
    return harness.begin(delete_owner(_storage(harness), "ada", **options))


@pytest.mark.parametrize("parallel", [1, 2, 5])
def test_all_threads_of_an_owner_go_and_no_others(
    harness: Harness, parallel: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE_THREADS", 2)
    threads = [f"a{number}" for number in range(5)]
    _store(harness, _storage(harness), "ada", *threads)
    _store(harness, _storage(harness), "bob", "b")
    done = _deleting(harness, parallel=parallel).finish()
    assert (sorted(done.deleted), done.failed) == (threads, {})
    assert _threads(harness) == {"b"}
    assert _deleting(harness).finish() == DeletedThreads([], {})


def _reads_item_of(thread: str) -> Any:
    return lambda call: call.method == "get_item" and call.params["Key"]["PK"] == {"S": f"{thread}#"}


IS_BACK = "the table has it again, or it was begun"


@pytest.mark.parametrize(
    ("rounds", "changed", "why"),
    [
        (0, {"owner": None, "last_active": None, "active_day": None}, IS_BACK),
        (1, {"epoch": {"B": bytes(24)}}, IS_BACK),
    ],
    ids=["left the directory", "another life"],
)
def test_a_thread_that_is_not_the_owners_any_more_stays(
    harness: Harness, rounds: int, changed: dict[str, Any], why: str
) -> None:
    _store(harness, _storage(harness), "ada", "a")
    run = _deleting(harness).until(_reads_item_of("a"))
    for _ in range(rounds):
        run.go_on()
    harness.change(harness.items("T", "a")["T"], **changed)
    done = run.finish()
    assert (done.deleted, list(done.failed)) == ([], ["a"])
    assert done.failed["a"].startswith(why)
    assert _threads(harness) == {"a"}


def test_a_thread_that_is_given_to_another_owner_meanwhile_stays(harness: Harness) -> None:
    _store(harness, _storage(harness), "ada", "a")
    run = _deleting(harness).until(_reads_item_of("a"))
    harness.run(set_thread(_storage(harness), "a", "bob", None, None))
    assert run.finish() == DeletedThreads([], {"a": "it is another owner's by now"})
    assert _threads(harness) == {"a"}


def test_a_thread_that_somebody_else_deletes_meanwhile_is_gone(harness: Harness) -> None:
    """Its item would keep an owner from the id, since it would be nobody's."""
    _store(harness, _storage(harness), "ada", "a")
    deleting = _deleting(harness).until(asks("update_item", "T"))
    harness.run(harness.process().delete_thread("a"))
    assert deleting.finish() == DeletedThreads(["a"], {})
    assert harness.model.items() == []


def test_what_an_agent_still_stores_in_a_deleted_thread_is_found_by_its_id(harness: Harness) -> None:
    """Writes that are stored after their thread was deleted have no entry in the directory."""
    _store(harness, _storage(harness), "ada", "a")
    at = thread_config("a", "", "1")
    writing = harness.begin(put_writes(_storage(harness), at, [("x", "late")], "task", ""))
    writing.until(asks("update_item", "C#1#W#"))
    deleting = _deleting(harness).until(removes_thread)
    deleting.go_on()
    writing.finish()
    done = deleting.finish()
    assert done.deleted == []
    assert done.failed["a"].startswith(IS_BACK)
    assert "delete it by its id" in done.failed["a"]
    assert _deleting(harness).finish() == DeletedThreads([], {})
    assert harness.items("C#", "a")
    harness.run(harness.process().delete_thread("a"))
    assert harness.items("C#", "a") == {}


def test_a_thread_that_is_begun_again_meanwhile_is_named(harness: Harness) -> None:
    _store(harness, _storage(harness), "ada", "a", "b")
    run = _deleting(harness)
    run.until(
        lambda call: (
            call.method == "query" and call.params.get("IndexName") is None and "b" not in _threads(harness)
        )
    )
    while "a" in _threads(harness) or "b" in _threads(harness):
        run.go_on()
    _store(harness, _storage(harness), "ada", "b", "late")
    done = run.finish()
    assert done.deleted == ["a"]
    assert list(done.failed) == ["b", "late"]
    for said in done.failed.values():
        assert said.startswith(IS_BACK)


def test_what_a_run_ends_with_after_the_erasure_is_found_by_the_next(harness: Harness) -> None:
    storage, at = _storage(harness), thread_config("a", "", "1")
    _store(harness, storage, "ada", "a")
    assert _deleting(harness).finish().deleted == ["a"]
    at["configurable"]["user_id"] = "ada"
    harness.run(put_writes(storage, at, [("__interrupt__", "?")], "task", ""))
    assert _deleting(harness).finish().deleted == ["a"]
    assert harness.model.items() == []


@pytest.mark.parametrize("reads_both", [True, False], ids=["reads both", "reads encrypted ones"])
def test_threads_from_before_the_saver_encrypted_are_not_passed_over(
    harness: Harness, *, reads_both: bool
) -> None:
    cipher = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    codec = Codec(cipher, allow_unencrypted=reads_both)
    encrypting = _storage(harness, codec=codec, owner_key=b"k" * 16)
    _store(harness, _storage(harness), "ada", "old")
    _store(harness, _storage(harness), "bob", "b")
    _store(harness, encrypting, "ada", "new")
    done = harness.run(delete_owner(encrypting, "ada"))
    assert sorted(done.deleted) == (["new", "old"] if reads_both else ["new"])
    assert done.failed == ({} if reads_both else {"old": UNREADABLE})
    assert _threads(harness) == ({"b"} if reads_both else {"b", "old"})


@pytest.mark.parametrize("about", [{"B": b"x"}, None], ids=["damaged", "missing"])
def test_a_thread_that_another_deletion_holds_or_that_cannot_be_read_is_named(
    harness: Harness, about: Any
) -> None:
    _store(harness, _storage(harness), "ada", "a", "b", "c")
    harness.change(harness.items("T", "c")["T"], about=about)
    harness.change(harness.items("T", "a")["T"], epoch={"S": "x"})
    done = _deleting(harness).finish()
    assert done.deleted == ["b"]
    assert done.failed == {"a": done.failed["a"], "c": UNREADABLE}
    assert done.failed["a"].startswith("item PK='a#' SK='T' is damaged")
    assert _threads(harness) == {"a", "c"}


def test_without_the_keys_of_the_directory_nobody_has_no_threads(harness: Harness) -> None:
    agents = _storage(harness, codec=ENCRYPTED, owner_key=b"sixteen bytes or more")
    _store(harness, agents, "ada", "a")
    other = replace(agents, owner_key=b"another key of 16 bytes")
    with pytest.raises(CheckpointerConfigurationError, match=r"^thread 'a' is not in the list of its owner"):
        harness.run(delete_owner(other, "ada"))
    assert harness.run(delete_owner(other, "ada", checks_keys=False)) == DeletedThreads([], {})
    assert harness.run(delete_owner(agents, "bob")) == DeletedThreads([], {})
    assert harness.run(delete_owner(agents, "ada")).deleted == ["a"]


@pytest.mark.parametrize(
    ("owner", "parallel", "why"), [("", 1, "owner"), ("a", 0, "parallel is 0"), ("a", True, "parallel")]
)
def test_wrong_arguments_are_refused(harness: Harness, owner: str, parallel: int, why: str) -> None:
    with pytest.raises(CheckpointerInputError, match=f"^{why}"):
        harness.run(delete_owner(_storage(harness), owner, parallel))


@pytest.mark.parametrize(
    ("owner", "memories", "namespaces"),
    [
        ("ada", [("users", "{owner}"), ("users", "{owner}", "x"), ("ada",)], [("users", "ada"), ("ada",)]),
        ("acme/ada.b", [("acme", "{owner}"), ("acme/ada%2Eb",)], [("acme", "ada%2Eb"), ("acme/ada%2Eb",)]),
        ("ada", [["{owner}"], ("{owner}",)], [("ada",)]),
        ("ada", [], []),
    ],
)
def test_the_namespaces_of_an_owner_are_each_looked_at_once(
    owner: str, memories: Sequence[Sequence[str]], namespaces: list[tuple[str, ...]]
) -> None:
    found = OwnerMemories(owner, memories, NoStore())
    assert (found.owner, found.namespaces) == (owner, namespaces)


@pytest.mark.parametrize(
    ("prefix", "owner", "label"),
    [
        ("", "eu/ada", "ada"),
        ("acme/", "eu/ada", "eu/ada"),
        ("acme/", "ada", "ada"),
        ("acme/team/", "ada", "ada"),
        ("acme-", "eu/ada", "ada"),
    ],
)
def test_a_client_whose_prefix_has_the_tenant_names_owners_without_it(
    prefix: str, owner: str, label: str
) -> None:
    found = OwnerMemories(owner, [("users", "{owner}")], NoStore(), prefix)
    assert found.namespaces == [("users", label)]


@pytest.mark.parametrize("labels", ["ada", ("users",), ()])
def test_a_namespace_without_the_owners_label_is_refused(labels: Sequence[str]) -> None:
    with pytest.raises(
        CheckpointerInputError, match=r"^namespace .* of memories has no label 'ada'; give one such as"
    ):
        OwnerMemories("ada", [labels], NoStore())
    with pytest.raises(CheckpointerInputError, match=r"^memories needs store="):
        OwnerMemories("ada", [("ada",)], None)
    with pytest.raises(CheckpointerInputError, match=r"^owner"):
        OwnerMemories("", [], None)


def test_a_report_says_what_went_and_where_else_to_look() -> None:
    memories = OwnerMemories("ada", [("a", "ada"), ("b", "ada")], NoStore())
    report = memories.report(DeletedThreads(["t"], {"u": "why"}), [(3, 0), (2, 1)])
    assert report == OwnerDeletion(
        ["t"], {"u": "why"}, 6, memories.namespaces, [("b", "ada")], report.not_looked_at
    )
    assert "as ada's" in report.not_looked_at[0]
    assert "memories outside these namespaces" in report.not_looked_at
    none = OwnerMemories("ada", [], None).report(DeletedThreads([], {}), [])
    assert "memories: no namespace of theirs was given" in none.not_looked_at
