"""InMemorySaver with the operations that it lacks, written as plainly as possible."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver


class ReferenceSaver(InMemorySaver):
    """What copying, pruning and deleting runs mean for what InMemorySaver holds."""

    def _remove(self, thread_id: str, namespace: str, checkpoint_ids: set[str]) -> None:
        """Take checkpoints out with their writes; kept ones whose parent goes lose it."""
        held = self.storage[thread_id][namespace]
        for checkpoint_id in checkpoint_ids:
            held.pop(checkpoint_id, None)
            self.writes.pop((thread_id, namespace, checkpoint_id), None)
        for checkpoint_id, (checkpoint, metadata, parent) in list(held.items()):
            if parent in checkpoint_ids:
                held[checkpoint_id] = (checkpoint, metadata, None)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints with one of these run ids."""
        for thread_id, namespaces in list(self.storage.items()):
            for namespace, held in list(namespaces.items()):
                runs = {each: self.serde.loads_typed(entry[1]).get("run_id") for each, entry in held.items()}
                self._remove(thread_id, namespace, {each for each, run in runs.items() if run in run_ids})

    def prune_to(self, thread_ids: Sequence[str], keep_last: int, *, is_sealed: bool) -> None:
        """Keep the newest checkpoints of each namespace, and in subgraphs what runs from those of the root begin with.

        Sealed metadata do not tell whether a run begins where the parent of its checkpoint did; others say here that it
        does not. Per-call namespaces have no root to go with here.
        """
        for thread_id in thread_ids:
            root = self.storage[thread_id][""]
            roots = sorted(root)[-keep_last:]
            bounds = {
                *roots,
                *(parent for each in roots if is_sealed and (parent := root[each][2]) is not None),
            }
            for namespace, held in list(self.storage[thread_id].items()):
                kept = set(sorted(held)[-keep_last:])
                if namespace:
                    kept |= {max((each for each in held if each < bound), default="") for bound in bounds}
                self._remove(thread_id, namespace, held.keys() - kept)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's checkpoints over those of the target, and each task's writes over the task's."""
        for namespace, held in list(self.storage[source_thread_id].items()):
            self.storage[target_thread_id][namespace].update(held)
            for checkpoint_id in held:
                copied = self.writes.get((source_thread_id, namespace, checkpoint_id), {})
                there = self.writes[target_thread_id, namespace, checkpoint_id]
                tasks = {task_id for task_id, _ in copied}
                kept = {place: write for place, write in there.items() if place[0] not in tasks}
                self.writes[target_thread_id, namespace, checkpoint_id] = {**kept, **copied}
        for (thread_id, namespace, channel, version), blob in list(self.blobs.items()):
            if thread_id == source_thread_id:
                self.blobs[target_thread_id, namespace, channel, version] = blob

    def renumber_writes(self, thread_id: str) -> None:
        """Give a thread's writes the places that they have in another saver: lists tell their order alone."""
        for (thread, *_), held in self.writes.items():
            if thread == thread_id:
                special = {place: write for place, write in held.items() if place[1] < 0}
                regular = [(place[0], write) for place, write in held.items() if place[1] >= 0]
                counts = Counter[str]()
                held.clear()
                held.update(special)
                for task_id, write in regular:
                    held[task_id, counts[task_id]] = write
                    counts[task_id] += 1

    def has_lost_ancestor(self, config: RunnableConfig) -> bool:
        """Whether the way back from a checkpoint ends at one that is not stored."""
        configurable: dict[str, Any] = config["configurable"]
        held = self.storage[configurable["thread_id"]][configurable["checkpoint_ns"]]
        current = configurable.get("checkpoint_id") or max(held, default=None)
        while current is not None and current in held:
            current = held[current][2]
        return current is not None
