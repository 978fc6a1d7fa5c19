"""Gates that are kept up to date answer as those that are counted anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dagsched.proof.check_expand import Node, Program
from dagsched.proof.check_gates import Board, Clock, Tally
from dagsched.schedule.model import HostStep, Schedule

CLOCKS = st.dictionaries(st.integers(0, 3), st.integers(1, 5), max_size=4)


def smallest(clocks: list[Clock], needed: int) -> Clock:
    """For each thread the needed-th smallest of what the clocks know, by sorting; what nobody knows is left out."""
    if not 0 < needed <= len(clocks):
        return {}
    found = {t: sorted(clock.get(t, 0) for clock in clocks)[needed - 1] for t in range(4)}
    return {thread: work for thread, work in found.items() if work}


@given(st.lists(st.tuples(st.integers(0, 5), CLOCKS), max_size=12))
def test_a_board_knows_the_k_th_smallest_of_each_thread(changes: list[tuple[int, Clock]]) -> None:
    board = Board()
    newest: dict[int, Clock] = {}
    for candidate, clock in changes:
        board.publish(candidate, clock)
        newest[candidate] = clock
        for needed in range(len(newest) + 2):
            assert board.certain(needed) == smallest(list(newest.values()), needed)


@given(st.data())
def test_a_tally_counts_what_has_run(data: st.DataObject) -> None:
    threads = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=10))
    step = HostStep(host="x")
    program = Program(
        Schedule("s", ()), [Node(n, thread, "set", step, 0, ()) for n, thread in enumerate(threads)], ["host", "a", "b"]
    )
    groups = [tuple(n for n in range(len(threads)) if data.draw(st.booleans())) for _ in range(3)]
    gates = {
        gate: (data.draw(st.integers(0, len(groups[at]) + 1)), groups[at])
        for gate, at in enumerate(data.draw(st.lists(st.integers(0, 2), max_size=6)))
    }
    tally = Tally(program, gates)
    queues = {thread: [n for n, own in enumerate(threads) if own == thread] for thread in set(threads)}
    done: set[int] = set()
    while any(queues.values()):
        thread = data.draw(st.sampled_from([thread for thread, queue in queues.items() if queue]))
        done.add(node := queues[thread].pop(0))
        tally.run(program, node)
        for gate, (needed, candidates) in gates.items():
            assert tally.is_starved(gate) == (len(done & set(candidates)) < needed)
            rest = [n for n in candidates if n not in done]
            assert sorted(tally.next(gate)) == sorted(
                min(n for n in rest if threads[n] == own) for own in {threads[n] for n in rest}
            )
