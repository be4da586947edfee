"""`put` meets deletions, expiries and late requests, each at the moment that a rule of it is for."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointSerializationError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS, PADDING_STEP_BYTES
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes, write_units
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import (
    CODEC,
    ENCRYPTED,
    THREAD,
    TTL_SECONDS,
    Harness,
    Process,
    asks,
    commits,
    confirms,
    deletes,
    removes_thread,
)

BIG = noise(40_000)


@pytest.mark.parametrize(
    ("values", "new"), [({"x": "new", "y": "old"}, ("x",)), ({"x": "old", "y": "old", "z": 1}, ())]
)
def test_a_channel_that_is_new_by_its_version_or_by_name_is_stored(
    harness: Harness, process: Process, values: dict[str, Any], new: tuple[str, ...]
) -> None:
    """Two branches of a thread may give the same version to different values."""
    harness.run(process.put("1", {"x": "old", "y": "old"}))
    harness.run(process.put("2", values, "1", new))
    assert harness.process().values("2") == values


def test_a_value_that_its_parent_lacks_is_stored_all_the_same(harness: Harness, process: Process) -> None:
    parent, child = checkpoint_of("1", {"x": "old"}), checkpoint_of("2", {"x": "old", "y": "given"})
    parent["channel_versions"]["y"] = child["channel_versions"]["y"]
    harness.run(put(process.storage, thread_config(THREAD), parent, {}, {"x": 1, "y": 1}))
    harness.run(put(process.storage, thread_config(THREAD, "", "1"), child, {}, {}))
    assert harness.process().values("2") == {"x": "old", "y": "given"}


@pytest.mark.parametrize("is_given", [True, False])
def test_what_a_step_left_alone_is_not_serialized_again(is_given: bool) -> None:
    """Whether the checkpoint has the channel's value, as LangGraph's have, or leaves it to the parent's."""
    dumped: list[object] = []

    class Noting(JsonPlusSerializer):
        def dumps_typed(self, obj: object) -> tuple[str, bytes]:
            dumped.append(obj)
            return super().dumps_typed(obj)

    harness = Harness()
    storage = harness.process(codec=Codec(Noting())).storage
    harness.run(put(storage, thread_config(THREAD), checkpoint_of("1", {"big": BIG}), {}, {"big": 1}))
    child = checkpoint_of("2", {"big": BIG, "x": "new"})
    if not is_given:
        del child["channel_values"]["big"]
    dumped.clear()
    harness.run(put(storage, thread_config(THREAD, "", "1"), child, {}, {"x": 1}))
    assert "new" in dumped
    assert BIG not in dumped


def test_a_put_that_finds_a_segment_gone_stores_the_value_again(harness: Harness, aged: Process) -> None:
    """A process stands still before it extends what it reuses, and finds it gone."""
    put = harness.begin(aged.put("4", {"big": noise(100_000)}, "3", ())).until(asks("update_item"))
    for segment in harness.items("S#").values():
        harness.remove(segment)
    put.finish()
    assert harness.process().values() == {"big": noise(100_000)}
    assert all("data" in item for item in harness.items("S#").values()), "a renewal has made an item"


def test_a_put_of_an_ended_epoch_replaces_no_others_head(harness: Harness, process: Process) -> None:
    """Two processes put the same checkpoint, and the one that began first comes last, and dies."""
    harness.run(process.put("1", {"big": BIG}))
    stale = harness.begin(process.put("2", {"big": noise(40_000, 1)}, "1")).until(commits("2"))
    harness.run(harness.process().put("2", {"big": noise(40_000, 1)}, "1"))
    harness.run(harness.process().prune())
    acknowledged = harness.items("C#2#")
    stale.go_on()
    stale.go_on()
    assert harness.items("C#2#") == acknowledged
    stale.finish()
    assert harness.process().values() == {"big": noise(40_000, 1)}


def test_a_put_that_uploaded_long_ago_begins_again(harness: Harness, process: Process) -> None:
    """No head ever names what a deletion removed because nothing had named it for an hour."""
    harness.run(process.put("1", {"big": BIG}))
    put = harness.begin(process.put("2", {"big": noise(40_000, 1)}, "1", ("big",)))
    put.until(asks("batch_write_item"))
    uploaded = put.perform()
    harness.now += ORPHAN_SECONDS + 1
    harness.run(harness.process().prune())
    put.go_on(uploaded)
    while not put.done:
        put.go_on()
        named = items.named_ids(harness.items("C#").values())
        assert {items.segment_sk(each) for each in named} <= harness.items("S#").keys()
    assert harness.process().values() == {"big": noise(40_000, 1)}


def test_a_put_does_not_rely_on_an_epoch_that_has_not_begun(harness: Harness, process: Process) -> None:
    """A deletion that found nothing left takes an idle epoch with it; a put of a later attempt may not be of it."""
    harness.run(process.put("1", {"big": BIG}))
    put = harness.begin(process.put("2", {"big": BIG}, "1", ())).until(commits("2"))
    deletion = harness.begin(harness.process().delete_thread()).until(removes_thread)
    put.finish()
    deletion.finish()
    epochs = {key: item["epoch"] for key, item in {**harness.items("C#"), **harness.items("T")}.items()}
    assert epochs.keys() == {"C#2#", "T"}
    assert epochs["C#2#"] == epochs["T"]
    assert harness.process().values() == {"big": BIG}


def test_a_put_reuses_nothing_of_a_parent_of_another_epoch(harness: Harness) -> None:
    """A deletion has not seen the parent, which was never acknowledged, and removes what it inherited."""
    dying = harness.process()
    harness.run(dying.put("1", {"big": BIG}))
    parent = harness.begin(dying.put("2", {"big": BIG}, "1", ())).until(commits("2"))
    deletion = harness.begin(harness.process().delete_thread()).until(deletes("S#"))
    parent.perform()
    harness.run(harness.process().put("3", {"big": BIG}, "2", ()))
    deletion.finish()
    assert harness.process().values() == {"big": BIG}


def test_a_checkpoint_whose_parent_was_never_stored_inherits_nothing(harness: Harness) -> None:
    """It may reuse bytes of the newest one, of which it is no child."""
    harness.run(harness.process().put("1", {"x": "of another branch", "y": "of another branch"}))
    harness.run(harness.process().put("2", {"x": "given"}, "never stored", ()))
    assert harness.process().values("2") == {"x": "given"}


@pytest.mark.parametrize("kept", [1, 2])
def test_a_put_that_begins_again_has_the_parent_left(harness: Harness, process: Process, kept: int) -> None:
    harness.run(process.put("1", {"big": BIG}))
    harness.run(process.put("2", {"big": BIG}, "1", ()))
    harness.run(process.put("3", {"x": 3}))
    put = harness.begin(process.put("4", {"big": BIG, "x": 4}, "2", ("x",))).until(confirms)
    harness.run(harness.process().prune(3 if kept == 2 else 2))
    put.finish()
    found = harness.process().found("4")
    assert found.checkpoint["channel_values"] == {"big": BIG, "x": 4}
    assert found.parent_config == (thread_config(THREAD, "", "2") if kept == 2 else None)


def test_a_put_whose_parent_goes_keeps_a_delta_snapshot(harness: Harness, process: Process) -> None:
    """Then only the head that it has stored itself has it."""
    log = _DeltaSnapshot([noise(20_000).hex()])
    harness.run(process.put("1", {"log": log, "x": 1}))
    checkpoint = checkpoint_of("2", {"x": 2})
    checkpoint["channel_versions"]["log"] = 1
    metadata: Any = {"source": "loop", "step": 1, "counters_since_delta_snapshot": {"log": (0, 1)}}
    run = harness.begin(put(process.storage, thread_config(THREAD, "", "1"), checkpoint, metadata, {"x": 1}))
    run.until(confirms)
    harness.run(harness.process().prune())
    run.finish()
    assert harness.process().values() == {"log": log, "x": 2}
    # By the link a reader notices that the writes are gone from which the channel would be rebuilt.
    assert items.text(harness.items("C#2#")["C#2#"], items.PARENT) == "1"


def test_a_value_that_is_given_as_new_and_is_what_it_was_is_as_idle_as_one_that_is_not_given() -> None:
    """Of a value that no step changes, nothing is carried along in the heads."""
    sizes = []
    for new in ((), ("big",)):
        harness = Harness()
        process = harness.process()
        harness.run(process.put("1", {"big": BIG}))
        harness.run(process.put("2", {"big": BIG}, "1", new))
        sizes.append(len(harness.items("C#")["C#2#"][items.BODY]["B"]))
        assert harness.process().values() == {"big": BIG}
    assert sizes[1] <= sizes[0] + 10


@pytest.mark.parametrize("encrypts", [False, True])
@pytest.mark.parametrize("size", [10, 100_000])
def test_metadata_are_readable_where_nothing_is_encrypted_and_they_are_small(
    harness: Harness, *, encrypts: bool, size: int
) -> None:
    codec = ENCRYPTED if encrypts else CODEC
    process, note = harness.process(codec=codec), noise(size).hex()
    harness.run(process.put("1", {"x": 1}, note=note))
    [head] = harness.items("C#").values()
    readable = not encrypts and size < 100
    assert (items.METADATA in head) == readable
    assert (items.SEALED_METADATA in head) != readable
    reader = harness.process(codec=codec)
    found = reader.found()
    assert found.metadata == {"source": "loop", "step": 1, "note": note}
    listing = list_checkpoints(reader.storage, thread_config(THREAD), {"note": note}, None, None)
    assert harness.run(collected(listing)) == [found]


def test_the_callers_metadata_is_added_and_replaces_nothing(harness: Harness) -> None:
    """What LangGraph says of a checkpoint stays."""
    config = thread_config(THREAD)
    config["configurable"] |= {"tenant": "acme", "step": -7}
    config["metadata"] = {"source": "forged", "step": 99, "user": "ann"}
    metadata: Any = {"source": "loop", "step": 3}
    harness.run(put(harness.process().storage, config, checkpoint_of("1", {}), metadata, {}))
    found = harness.process().found()
    assert found.metadata == {"source": "loop", "step": 3, "tenant": "acme", "user": "ann"}


@pytest.mark.parametrize(
    ("values", "metadata", "rest", "named"),
    [
        ({"x": object()}, {}, {}, "channel 'x' cannot be serialized"),
        ({}, {"note": object()}, {}, "the metadata cannot be serialized"),
        ({}, {}, {"note": object()}, "the checkpoint cannot be serialized"),
        ({"bad \ud800": 1}, {}, {}, "the checkpoint cannot be serialized"),
    ],
)
def test_what_cannot_be_serialized_is_named_and_nothing_is_stored(
    harness: Harness, values: dict[str, Any], metadata: Any, rest: dict[str, Any], named: str
) -> None:
    codec = Codec(JsonPlusSerializer(pickle_fallback=False))
    storage = harness.process(codec=codec).storage
    checkpoint: Any = {**checkpoint_of("1", values), **rest}
    with pytest.raises(CheckpointSerializationError, match=f"^{named}"):
        harness.run(put(storage, thread_config(THREAD), checkpoint, metadata, dict.fromkeys(values, 1)))
    assert harness.model.items() == []


def test_a_delta_channel_without_its_parent_is_rebuilt_from_nothing_known(harness: Harness) -> None:
    """It is no child of the newest one, whatever that is rebuilt from."""
    counters: Any = {"counters_since_delta_snapshot": {"log": (0, 0)}}
    harness.run(harness.process().put("1", {"log": ["stored"]}))
    harness.run(harness.process().put("2", {"x": 2}, "1", **counters))
    harness.run(harness.process().put("3", {"x": 3}, "never stored", **counters))
    rebuilt_from = [items.text(head, items.REBUILT_FROM) for head in harness.items("C#").values()]
    assert rebuilt_from == [None, "1", ""]


@pytest.mark.parametrize("new", [("big", "other"), ("other",)])
def test_a_state_that_would_be_too_large_to_be_read_is_not_stored(
    harness: Harness, process: Process, new: tuple[str, ...]
) -> None:
    """What it inherits counts too."""
    harness.run(process.put("1", {"big": BIG}))
    before = harness.model.items()
    # A process that remembers what the first one has stored.
    limited = replace(
        process, storage=replace(process.storage, codec=Codec(JsonPlusSerializer(), bytes_max=79_999))
    )
    put = limited.put("2", {"big": BIG, "other": noise(40_000, 1)}, "1", new)
    message = "^item PK='t#' SK='C#2#' needs over 79999 bytes"
    with pytest.raises(CheckpointerConfigurationError, match=message):
        harness.run(put)
    assert harness.model.items() == before


def test_a_subgraph_stores_once_what_its_steps_leave_alone(harness: Harness, process: Process) -> None:
    """Small states of the root namespace stay in their head, which one request reads."""
    subject = noise(1_500)
    for namespace in ("", "inner"):
        for step in range(1, 5):
            values = {"subject": subject, "step": step}
            parent_id = str(step - 1) if step > 1 else None
            new = ("subject", "step") if step == 1 else ("step",)
            harness.run(process.put(str(step), values, parent_id, new, namespace=namespace))
            assert harness.process().values(namespace=namespace) == values
    assert [item["PK"]["S"] for item in harness.items("S#").values()] == [f"{THREAD}#inner"]
    # A head costs a unit, and the subject two.
    inner = [each for each in harness.model.items() if each["PK"]["S"] == f"{THREAD}#inner"]
    assert [write_units(item_bytes(each)) for each in inner] == [1, 1, 1, 1, 2]


def test_a_value_whose_segments_were_all_replaced_stays_inline(harness: Harness, process: Process) -> None:
    """Those of the next one would be lost as well, so the head has it, every second time."""
    for step in range(1, 5):
        harness.run(
            process.put(
                str(step), {"x": noise(1_500, step)}, str(step - 1) if step > 1 else None, namespace="inner"
            )
        )
        assert harness.process().values(namespace="inner") == {"x": noise(1_500, step)}
    assert len(harness.items("S#")) == 2


def _text(rng: random.Random) -> str:
    return rng.randbytes(30).hex()


@pytest.mark.parametrize("codec", [CODEC, ENCRYPTED], ids=["plain", "encrypted"])
def test_small_values_that_steps_leave_alone_are_written_once(harness: Harness, codec: Codec) -> None:
    rng, process = random.Random(1), harness.process(codec=codec)
    values: dict[str, Any] = {f"field {number}": _text(rng) for number in range(400)}
    harness.run(process.put("100", values))
    stored, units = harness.items(""), list[int]()
    for step in range(101, 150):
        name = f"field {step % 60}"
        values = {**values, name: _text(rng)}
        harness.run(process.put(str(step), values, str(step - 1), [name]))
        new = [item for sk, item in harness.items("").items() if sk not in stored]
        stored = harness.items("")
        units.append(sum(write_units(item_bytes(each)) for each in new))
        if step % 10 == 0:
            # Another process goes on from what it reads.
            process = harness.process(codec=codec)
            assert process.values() == values
    assert units[0] > 15
    assert max(units[1:]) <= 4
    assert sum(units[1:]) <= 2 * len(units)


def test_small_values_are_not_stored_apart_where_the_others_do_not_fit_into_the_head(
    harness: Harness, process: Process
) -> None:
    rng = random.Random(1)
    values: dict[str, Any] = {f"field {number}": _text(rng) for number in range(1_500)}
    harness.run(process.put("1", values))
    values |= {f"field {number}": _text(rng) for number in range(1_200)}
    harness.run(process.put("2", values, "1", [f"field {number}" for number in range(1_200)]))
    assert harness.process().values() == values
    # Nothing was stored that no head names.
    named = items.named_ids(harness.items("C#").values())
    assert {*harness.items("S#")} == {items.segment_sk(each) for each in named}


@pytest.mark.parametrize("codec", [CODEC, ENCRYPTED], ids=["plain", "encrypted"])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_small_values_are_read_as_they_are_after_any_steps(codec: Codec, data: st.DataObject) -> None:
    """Values change, go, come back, and grow to what has segments or would be too large for one; epochs end."""
    rng, harness = random.Random(data.draw(st.integers(0, 999))), Harness()
    process = harness.process(codec=codec)
    values: dict[str, Any] = {str(number): _text(rng) for number in range(150)}
    harness.run(process.put("100", values))
    for step in range(101, 107):
        kinds = data.draw(
            st.lists(st.sampled_from(["one", "half", "gone", "large", "long", "back"]), max_size=2)
        )
        changed: dict[str, Any] = {}
        for kind in kinds:
            names = [str(each) for each in rng.sample(range(200), {"half": 80, "long": 150}.get(kind, 3))]
            if kind == "gone":
                values = {name: value for name, value in values.items() if name not in names}
                changed = {name: value for name, value in changed.items() if name not in names}
                continue
            made = {"large": noise(9_000, step).hex(), "long": "x" * rng.randrange(2_000)}
            changed |= {name: made.get(kind) or _text(rng) for name in names}
        values = {**values, **changed}
        if data.draw(st.booleans()):
            process = harness.process(codec=codec)
        if data.draw(st.integers(0, 4)) == 0:
            harness.run(process.prune())
        harness.run(process.put(str(step), values, str(step - 1), list(changed)))
        assert harness.process(codec=codec).values() == values


@pytest.mark.parametrize("size", [10, 9_000, 40_000])
@pytest.mark.parametrize("ttl_seconds", [None, TTL_SECONDS])
def test_a_sealed_head_fills_whole_steps(harness: Harness, ttl_seconds: int | None, size: int) -> None:
    """What it gets after it was composed counts too, so that no head needs a unit for its last bytes."""
    # A number takes bytes by its digits, without zeros at its end.
    harness.now += 12_345_679
    process = harness.process(ttl_seconds, ENCRYPTED)
    harness.run(process.put("1", {"big": noise(size)}))
    harness.run(process.put("2", {"big": noise(size), "x": 1}, "1", ["x"]))
    sizes = [item_bytes(head) % PADDING_STEP_BYTES for head in harness.items("C#").values()]
    assert sizes == [0, 0]
