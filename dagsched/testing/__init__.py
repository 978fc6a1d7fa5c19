"""dagsched in a test suite of your own: assertions on schedules and plans, and random ones to test tools with.

::

    from dagsched.testing import assert_proved, assert_race_free

    def test_pipeline():
        assert_race_free("pipeline.schedule.yaml")   # streams and events that somebody wrote by hand
        assert_proved("detector.yaml")               # a plan: compiled, proved, and attacked

:func:`plans` and :func:`schedules` are hypothesis strategies. ``docs/testing.md`` has the rest.
"""

from __future__ import annotations

from dagsched.testing.assertions import assert_proved, assert_race_free
from dagsched.testing.plans import plans
from dagsched.testing.schedules import schedules

__all__ = ["assert_proved", "assert_race_free", "plans", "schedules"]
