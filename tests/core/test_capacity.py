"""When a full house will probably have room."""

import pytest

from llmgw.core.capacity import AT_MOST, LOOK_BACK, SAMPLES, UNKNOWN, Pace, wait_for_room


def pace(*ends: float) -> Pace:
    made = Pace()
    for end in ends:
        made.ended(end)
    return made


@pytest.mark.parametrize(
    ("ends", "per_second"),
    [
        pytest.param([], 0.0, id="nothing ended"),
        pytest.param([100.0 - LOOK_BACK], 0.0, id="too long ago"),
        pytest.param([90.0], 0.1, id="one in ten seconds"),
        pytest.param([96.0, 97.0, 98.0, 99.0], 1.0, id="one a second"),
        pytest.param([99.9, 99.95], 2.0, id="never by less than a second"),
    ],
)
def test_the_pace_of_late(ends, per_second):
    assert pace(*ends).per_second(100.0) == pytest.approx(per_second)


def test_a_fast_pace_is_seen_from_the_last_ones_alone():
    made = pace(*(at / 100 for at in range(1000)))

    assert made.per_second(10.0) == pytest.approx(SAMPLES, rel=0.01)


@pytest.mark.parametrize(
    ("ahead", "per_second", "seconds"),
    [
        pytest.param(0, 0.0, UNKNOWN, id="no pace known"),
        pytest.param(0, 2.0, 1, id="soon"),
        pytest.param(9, 2.0, 5, id="ten more at two a second"),
        pytest.param(2, 0.5, 6, id="slow"),
        pytest.param(1000, 0.5, AT_MOST, id="come back and ask again"),
    ],
)
def test_the_wait_is_as_long_as_those_ahead_need(ahead, per_second, seconds):
    assert wait_for_room(ahead, per_second) == seconds
