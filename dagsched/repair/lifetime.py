"""Move a free behind the last step that reads what it destroys."""

from __future__ import annotations

from collections.abc import Iterator

from dagsched.proof.check_expand import name_of
from dagsched.proof.check_findings import Gathered
from dagsched.repair.draft import Built, Draft
from dagsched.repair.order import move
from dagsched.repair.places import Family, place_pair


def move_frees(draft: Draft, built: Built, family: Family, gathered: Gathered) -> Iterator[Draft]:
    """Drafts for each free that something reads after; the race that this leaves is for a later pass."""
    last: dict[int, tuple[int, str]] = {}
    for free, use in gathered.dangling.values():
        pair = place_pair(family, free, use)
        place = pair.wait_before
        if pair.distance:  # The next iteration reads it: nothing inside the loop can free it.
            assert pair.loop is not None
            place = pair.loop
        name = name_of(use)
        if free.static not in last or place > last[free.static][0]:
            last[free.static] = (place, name)
    for free_number, (place, name) in last.items():
        step = family.steps[free_number]
        reason = f"`{name}` reads it after it was freed"
        for behind in (place, *reversed(family.loops_around(place))):  # The next iteration may read it as well.
            yield move(draft, built, free_number, step, behind, reason, "after")
