"""An agent that works on conversations until it is killed, by the saver's own methods.

It goes on where its killed predecessor was: from the table. What it reads is checked by what the operation log says.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from tests.chaos.content import COPY_MARK, SHAPES, next_values, writes_of
from tests.chaos.recorder import Methods, OperationFailedError, Recorder
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config

CONVERSATIONS = 6
# After so many operations a conversation is left as it is, and the next one begins.
OPERATIONS_PER_CONVERSATION = 60
NAMESPACES = ("", "", "inner")
FORK_RATE = 0.15
TIDY_RATE = 0.8
TIDIES_MAX = 4
# A deletion that was killed keeps others out of its thread for two minutes. Most are not tried meanwhile.
PATIENCE_RATE = 0.8


class Agent:
    """One process's work on some conversations at once."""

    def __init__(self, methods: Methods, recorder: Recorder, name: str, rng: random.Random) -> None:
        """Take what the agent works with."""
        self._methods = methods
        self._recorder = recorder
        self._log = recorder.operation_log
        self._name = name
        self._rng = rng
        self._tidies: set[asyncio.Task[None]] = set()

    async def work(self) -> None:
        """Work on all conversations, for ever."""
        await asyncio.gather(*(self._converse(number) for number in range(CONVERSATIONS)))

    async def _converse(self, number: int) -> None:
        shapes = list(SHAPES)
        generation = 0
        while True:
            thread = f"{shapes[number % len(shapes)]}-{self._name}-{number}-{generation}"
            if self._log.operations[thread] >= OPERATIONS_PER_CONVERSATION:
                generation += 1
                continue
            try:
                await self._turn(thread, self._rng.choice(NAMESPACES))
            except OperationFailedError:
                # As an application does that was told of an error: it reads the thread again, and goes on.
                continue
            finally:
                for each in [each for each in self._tidies if each.done()]:
                    self._tidies.discard(each)
                    each.result()
            if self._rng.random() < TIDY_RATE and len(self._tidies) < TIDIES_MAX:
                self._tidies.add(asyncio.create_task(self._tidy(thread)))

    # A turn of a conversation

    async def _turn(self, thread: str, namespace: str) -> None:
        """Go on from the newest checkpoint, or sometimes from an older one, for some steps."""
        seen = await self._latest(thread, namespace)
        if seen is not None and self._rng.random() < FORK_RATE:
            listed = await self._list(thread)
            within = [each for each in listed if _configurable(each.config)["checkpoint_ns"] == namespace]
            seen = self._rng.choice(within) if within else None
        parent_id = None if seen is None else seen.checkpoint["id"]
        values: Mapping[str, Any] = {} if seen is None else seen.checkpoint["channel_values"]
        versions = {} if seen is None else dict(seen.checkpoint["channel_versions"])
        run_id = f"{thread}/{self._recorder.new_id()}"
        for _ in range(self._rng.randint(1, 5)):
            parent_id, values = await self._put(thread, namespace, parent_id, values, versions, run_id)
            tasks = [
                self._put_writes(thread, namespace, parent_id, f"task-{number}")
                for number in range(self._rng.choice((0, 1, 1, 3)))
            ]
            await _all(tasks)
            if self._rng.random() < 0.2:
                await self._one(thread, namespace, parent_id)
        if self._rng.random() < 0.3:
            await self._list(thread)

    async def _put(
        self,
        thread: str,
        namespace: str,
        parent_id: str | None,
        before: Mapping[str, Any],
        versions: dict[str, Any],
        run_id: str,
    ) -> tuple[str, Mapping[str, Any]]:
        checkpoint_id = self._recorder.new_id()
        values = next_values(thread, checkpoint_id, before)
        changed = [name for name in values if values[name] is not before.get(name)]
        new = {name: int(versions.get(name, 0)) + 1 for name in changed}
        versions |= new
        checkpoint = checkpoint_of(checkpoint_id, values)
        checkpoint["channel_versions"] = dict(versions)
        config: RunnableConfig = {
            **thread_config(thread, namespace, parent_id),
            "metadata": {"run_id": run_id},
        }
        await self._recorder.insist(
            lambda: self._methods.call("put", config, checkpoint, METADATA, new),
            "put",
            thread=thread,
            namespace=namespace,
            id=checkpoint_id,
            parent=parent_id,
            run=run_id,
        )
        return checkpoint_id, values

    async def _put_writes(self, thread: str, namespace: str, checkpoint_id: str, task_id: str) -> None:
        config = thread_config(thread, namespace, checkpoint_id)
        writes = writes_of(thread, checkpoint_id, task_id)
        await self._recorder.insist(
            lambda: self._methods.call("put_writes", config, writes, task_id),
            "put_writes",
            thread=thread,
            namespace=namespace,
            id=checkpoint_id,
            task=task_id,
        )

    # Reading, and checking what is read

    async def _latest(self, thread: str, namespace: str) -> CheckpointTuple | None:
        config = thread_config(thread, namespace)
        began, seen = await self._recorder.perform(
            lambda: self._methods.call("get_tuple", config), "get_tuple", thread=thread
        )
        self._log.history(thread).check_latest((thread, namespace), seen, began)
        latest: CheckpointTuple | None = seen
        return latest

    async def _one(self, thread: str, namespace: str, checkpoint_id: str) -> None:
        config = thread_config(thread, namespace, checkpoint_id)
        began, seen = await self._recorder.perform(
            lambda: self._methods.call("get_tuple", config), "get_tuple by id", thread=thread
        )
        history = self._log.history(thread)
        history.check_one(history.puts[thread, namespace, checkpoint_id], seen, began)

    async def _list(self, thread: str) -> list[CheckpointTuple]:
        began, seen = await self._recorder.perform(lambda: self._methods.list(thread), "list", thread=thread)
        self._log.history(thread).check_list(thread, seen, began)
        return seen

    # What goes on in a thread besides its conversation

    async def _tidy(self, thread: str) -> None:
        """Prune, delete or copy a thread while its conversation goes on."""
        chosen = self._rng.choices((self._prune, self._delete_run, self._copy, self._delete), (4, 2, 3, 2))[0]
        cut_off = any(not each.acknowledged for each in self._log.history(thread).deletions)
        if cut_off and self._rng.random() < PATIENCE_RATE:
            chosen = self._copy
        try:
            await chosen(thread)
        except OperationFailedError:
            # It is in the operation log.
            return

    async def _prune(self, thread: str) -> None:
        kept = self._rng.randint(1, 5)
        await self._recorder.perform(
            lambda: self._methods.call("prune", [thread], strategy="keep_last", keep_last=kept),
            "prune",
            thread=thread,
            kept=kept,
        )

    async def _delete_run(self, thread: str) -> None:
        history = self._log.history(thread)
        runs = sorted({put.run_id for put in history.puts.values()})[:-1]
        if runs:
            run_id = self._rng.choice(runs)
            await self._recorder.perform(
                lambda: self._methods.call("delete_for_runs", [run_id]),
                "delete_for_runs",
                thread=thread,
                runs=[run_id],
            )

    async def _copy(self, thread: str) -> None:
        target = f"{thread}{COPY_MARK}{self._recorder.new_id()}"
        try:
            await self._recorder.perform(
                lambda: self._methods.call("copy_thread", thread, target),
                "copy_thread",
                thread=thread,
                target=target,
            )
        except OperationFailedError as failed:
            if isinstance(failed.__cause__, CheckpointNotFoundError):
                # It saw an empty thread, as a list may see it that a deletion has emptied.
                self._log.history(thread).check_list(thread, [], failed.began)
            raise
        await self._list(target)

    async def _delete(self, thread: str) -> None:
        chosen = self._rng.choice([thread, *self._log.history(thread).copies])
        await self._recorder.perform(
            lambda: self._methods.call("delete_thread", chosen), "delete_thread", thread=chosen
        )
        await self._list(chosen)


async def _all(tasks: list[Any]) -> None:
    """Await several at once, all of them to their end; raise what one of them raised."""
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _configurable(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})
