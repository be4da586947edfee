"""Random runs: a few actors, some faults, every choice from one seed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError, ThreadBusyError
from tests.simulation.savers import TableSaver
from tests.simulation.schedule import Choices
from tests.simulation.simulator import FAIR, MEMORY_BYTES, Faults, Process
from tests.simulation.world import NETWORK_ERRORS, OWN_RUN, SUBGRAPHS, Flow, MakeSaver, World

FAULTS = (
    FAIR,
    Faults(crash=0.01),
    Faults(lost_request=0.03, lost_answer=0.03),
    Faults(late=0.05),
    Faults(repeated=0.1),
    Faults(unprocessed=0.3),
    Faults(stale=0.3, torn=0.5),
    Faults(pause=0.01),
    Faults(pause=0.03, removal=0.1),
    Faults(still=0.01, pause=0.01),
    Faults(still=0.02, pause=0.005, crash=0.005, removal=0.05),
    Faults(
        crash=0.005,
        lost_request=0.01,
        lost_answer=0.01,
        late=0.02,
        repeated=0.05,
        unprocessed=0.1,
        stale=0.1,
        torn=0.2,
        removal=0.05,
    ),
)
PATIENCE = (0.0, 0.7, 0.9, 0.97)
TRIES = 2
ACTORS_MAX = 8
# A thread with such a ttl outlives some of the simulator's pauses.
TTLS_SECONDS: Sequence[Sequence[int | None]] = ((None,), (3000,), (None, 3000, 9000))
# How long a superstep waits: parts of the shorter ttl.
WAITS_SECONDS = (200, 900, 1800, 2600, 3500)
# Enough for all that a process reads, mostly; too little for a checkpoint; none.
MEMORIES_BYTES = (MEMORY_BYTES, MEMORY_BYTES, MEMORY_BYTES, 1 << 13, 0)

# Threads that are used, deleted, and copied to each other.
SHARED_THREADS = ("one", "two")

ActorFlow: TypeAlias = Callable[[Process], Flow]
SharingStep: TypeAlias = Callable[[World, Choices, str, str, str], ActorFlow]
"""Makes a step, given the usual namespace, and the threads of which the first is mostly copied to the other."""


def random_run(choices: Choices, saver: MakeSaver = TableSaver) -> World:
    """Let a few actors do something to one or two threads, and check everything."""

    def flows(world: World, namespace: str) -> list[ActorFlow]:
        return [_random_flow(world, choices, namespace) for _ in range(2 + choices.pick(ACTORS_MAX - 1))]

    return _run(choices, saver, flows)


def copying_run(choices: Choices, saver: MakeSaver = TableSaver) -> World:
    """Let two or three actors copy a thread to the same id, beside others, and check everything.

    Copies to one id are rare in `random_run`, which took 31,000 schedules to show that one can hide the other.
    """

    def flows(world: World, namespace: str) -> list[ActorFlow]:
        copies: list[ActorFlow] = [_copy_of(world)] * (2 + choices.pick(2))
        others = [_random_flow(world, choices, namespace) for _ in range(1 + choices.pick(3))]
        return others + copies if choices.pick(2) else copies + others

    return _run(choices, saver, flows)


def sharing_run(choices: Choices, saver: MakeSaver = TableSaver) -> World:
    """Let a few processes copy two threads to each other, use and delete them, over and over, and check everything.

    So ids are used again after deletions, and copied to while others use them, by processes that remember them. A run
    has few kinds of steps, which then meet in any order.
    """

    def flows(world: World, namespace: str) -> list[ActorFlow]:
        kinds = [_copying_step, *(_SHARING_STEPS[choices.pick(len(_SHARING_STEPS))] for _ in range(2))]
        return [_sharing_flow(world, choices, namespace, kinds) for _ in range(1 + choices.pick(4))]

    return _run(choices, saver, flows)


def _sharing_flow(world: World, choices: Choices, namespace: str, kinds: Sequence[SharingStep]) -> ActorFlow:
    flows = list[ActorFlow]()
    for _ in range(2 + choices.pick(4)):
        # Mostly from the first to the other.
        threads = SHARED_THREADS if choices.pick(4) else SHARED_THREADS[::-1]
        flows.append(kinds[choices.pick(len(kinds))](world, choices, namespace, *threads))

    def tried(process: Process, flow: ActorFlow) -> Flow:
        try:
            yield from flow(process)
        except (*NETWORK_ERRORS, CheckpointNotFoundError, ThreadBusyError):
            world.simulator.leave(process)

    def one_after_the_other(process: Process) -> Flow:
        for each in flows:
            yield from tried(process, each)

    return one_after_the_other


def _copying_step(world: World, choices: Choices, namespace: str, source: str, target: str) -> ActorFlow:
    del choices, namespace
    return _copy_of(world, source, target)


def _deleting_step(world: World, choices: Choices, namespace: str, source: str, target: str) -> ActorFlow:
    del namespace
    thread = (target, source)[choices.pick(2)]
    return lambda process: world.delete_thread(process, thread, tries=TRIES)


def _answering_step(world: World, choices: Choices, namespace: str, source: str, target: str) -> ActorFlow:
    del source, choices
    return lambda process: world.answers(process, (target, namespace), 2, tries=TRIES)


def _talking_step(world: World, choices: Choices, namespace: str, source: str, target: str) -> ActorFlow:
    thread = (target, source)[choices.pick(2)]
    return lambda process: world.conversation(process, thread, 2, namespace=namespace, tries=TRIES)


def _any_step(world: World, choices: Choices, namespace: str, source: str, target: str) -> ActorFlow:
    thread, other = (source, target) if choices.pick(2) else (target, source)
    return _random_flow(world, choices, namespace, thread, other)


_SHARING_STEPS: Sequence[SharingStep] = (_deleting_step, _answering_step, _talking_step, _any_step)


def waiting_run(choices: Choices, saver: MakeSaver = TableSaver) -> World:
    """Let threads with a ttl wait within their supersteps, for much of the ttl, beside others; and check everything."""

    def flows(world: World, namespace: str) -> list[ActorFlow]:
        waiting = [_waiting_flow(world, choices, namespace) for _ in range(1 + choices.pick(2))]
        return [*waiting, *(_random_flow(world, choices, namespace) for _ in range(choices.pick(3)))]

    return _run(choices, saver, flows, TTLS_SECONDS[1:])


def _waiting_flow(world: World, choices: Choices, namespace: str) -> ActorFlow:
    waits = [float(WAITS_SECONDS[choices.pick(len(WAITS_SECONDS))]) for _ in range(2 + choices.pick(4))]
    if choices.pick(2):
        return lambda process: world.subgraphs(process, "one", waits, tries=TRIES)
    return lambda process: world.superstep(process, ("one", namespace), waits, tries=TRIES)


def _run(
    choices: Choices,
    saver: MakeSaver,
    flows_of: Callable[[World, str], list[ActorFlow]],
    ttls: Sequence[Sequence[int | None]] = TTLS_SECONDS,
) -> World:
    faults = replace(FAULTS[choices.pick(len(FAULTS))], patience=PATIENCE[choices.pick(len(PATIENCE))])
    ttls_seconds = ttls[choices.pick(len(ttls))]
    world = World(
        choices,
        faults,
        ttls_seconds=ttls_seconds,
        memories_bytes=MEMORIES_BYTES,
        delta=choices.pick(2) == 1,
        directory=True,
        saver=saver,
    )
    warm = world.simulator.process()
    namespace = ("", *SUBGRAPHS)[choices.pick(3)]
    run_id = ("run", OWN_RUN)[choices.pick(2)]
    world.alone(world.conversation(warm, "one", choices.pick(5), namespace=namespace, run_id=run_id))
    world.together(flows_of(world, namespace), warm if choices.pick(2) else None)
    world.simulator.faults = replace(faults, crash=0.0)
    world.check_end(go_on=choices.pick(2) == 1)
    return world


def _copy_of(world: World, source: str = "one", target: str = "two") -> ActorFlow:
    return lambda process: world.copy_thread(process, source, target)


def _random_flow(
    world: World, choices: Choices, usual: str, thread: str = "one", target: str = "two"
) -> ActorFlow:
    namespace = usual if choices.pick(3) else ("", *SUBGRAPHS)[choices.pick(3)]
    back = choices.pick(3)
    kept = 1 + choices.pick(2)
    run_id = ("run", "other", OWN_RUN)[choices.pick(3)]
    place = (thread, namespace)
    flows: Sequence[ActorFlow] = (
        _copy_of(world, thread, target),
        lambda process: world.conversation(
            process, thread, 3, namespace=namespace, run_id=run_id, tries=TRIES
        ),
        lambda process: world.background(process, place, 3, run_id=run_id, tries=TRIES),
        lambda process: world.reader(process, thread, 2, namespace=namespace),
        lambda process: world.delete_thread(process, thread, tries=TRIES),
        lambda process: world.prune(process, thread, kept, tries=TRIES),
        lambda process: world.delete_for_runs(process, run_id, tries=TRIES),
        lambda process: world.repair(process, thread, tries=TRIES),
        lambda process: world.clone(process, place, run_id=run_id, tries=TRIES),
        lambda process: world.undo(process, place, 1 + back, tries=TRIES),
        lambda process: world.answers(process, place, 1 + back, tries=TRIES),
        lambda process: world.fork(process, place, back, run_id=run_id, tries=TRIES),
        lambda process: world.fork(process, place, back, run_id=run_id, tries=TRIES),
        lambda process: world.lister(process, 3),
        lambda process: world.describe(process, thread, tries=TRIES, takes_back=back == 0),
    )
    return flows[choices.pick(len(flows))]
