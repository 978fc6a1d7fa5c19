"""A test suite that keeps its streams and events right: `pytest examples/testing`."""

from pathlib import Path

import pytest
from hypothesis import given, settings

import dagsched
from dagsched.testing import assert_proved, assert_race_free, plans

EXAMPLES = Path(__file__).parent.parent

DOUBLE_BUFFER = """
dagsched-schedule: 1
name: double-buffer
params: {n: null}
events: {ready: {ring: 2}, done: {ring: 2}}
buffers: {hin: {place: host, ring: 2}, din: {place: device, ring: 2}, out: {place: device}}
steps:
  - loop: i
    count: n
    steps:
      - {stream: copy, wait: done@i-2}
      - {stream: copy, op: upload, reads: [hin@i], writes: [din@i]}
      - {stream: copy, record: ready@i}
      - {stream: compute, wait: ready@i}
      - {stream: compute, op: infer, reads: [din@i], writes: [out]}
      - {stream: compute, record: done@i}
"""


def test_double_buffer() -> None:
    """Streams and events that somebody wrote by hand: no interleaving may race, for no count."""
    assert_race_free(DOUBLE_BUFFER)
    assert_race_free(EXAMPLES / "handwritten" / "batches.schedule.yaml")


def test_without_the_wait_it_races() -> None:
    """What the assertion says when somebody drops a wait: the shortest interleaving that goes wrong."""
    broken = DOUBLE_BUFFER.replace("      - {stream: copy, wait: done@i-2}\n", "")
    with pytest.raises(AssertionError) as caught:
        assert_race_free(broken)
    assert "upload@2 can overwrite din before infer@0 has read it" in str(caught.value)


def test_detector() -> None:
    """A plan: it compiles, its schedule is proved and attacked, and every wait in it is needed."""
    assert_proved(EXAMPLES / "detector.yaml", minimal=True)


@settings(max_examples=5, deadline=None)
@given(plans(ops=3, loops=1))
def test_random_plans(plan: dagsched.Plan) -> None:
    """`plans()` draws plans for tests of your own tools; here the tool is the compiler."""
    assert_proved(plan, examples=20)
