"""How numbers and times are written."""

import pytest

from llmgw.core.types import RouteClass
from llmgw.web.admin import words


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.001, "<1 %"),
        (0.005, "<1 %"),
        (0.01, "1 %"),
        (0.5, "50 %"),
        (0.996, ">99 %"),
        (1, "100 %"),
    ],
)
def test_shares(share, text):
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-0.1, "0 ms"),
        (0.0421, "42 ms"),
        (0.99949, "999 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (125.2, "2 min 5 s"),
        (3599.6, "1 h 0 min"),
        (7384, "2 h 3 min"),
    ],
)
def test_durations(seconds, text):
    assert words.span(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1234, "1\u2009234"),
        (9_999_999, "9\u2009999\u2009999"),
        (12_345_678, "12.3 M"),
    ],
)
def test_counts(number, text):
    assert words.count(number) == text


def test_times_are_utc():
    assert words.clock_time(0) == "00:00:00"
    assert words.iso_time(0) == "1970-01-01T00:00:00Z"


def test_every_lane_has_a_name():
    assert {words.lane_name(lane) for lane in RouteClass} >= {"HTTP", "SSE", "WebSocket"}
