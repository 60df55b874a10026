import pytest

from llmgw.observe.timestamps import timestamp


@pytest.mark.parametrize(
    ("created", "shown"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000.0625, "2023-11-14T22:13:20.062Z"),
        (1_700_000_000.9999998, "2023-11-14T22:13:20.999Z"),
        (1_700_000_001.0, "2023-11-14T22:13:21.000Z"),
    ],
)
def test_a_time_is_cut_to_milliseconds(created, shown):
    assert timestamp(created) == shown
