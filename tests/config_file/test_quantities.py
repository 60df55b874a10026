import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.config_file.faults import Unfit
from llmgw.config_file.quantities import (
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("3s", 3.0),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("30d", 30 * 86400.0),
        ("1d12h", 1.5 * 86400),
        ("1.5s", 1.5),
        ("2m0s", 120.0),
        ("0s", 0.0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        (" 3s ", 3.0),
    ],
)
def test_a_duration_is_numbers_with_units(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("3", id="no unit"),
        pytest.param("s", id="no number"),
        pytest.param("3 s", id="blank inside"),
        pytest.param("-3s", id="negative"),
        pytest.param("30s1m", id="units in the wrong order"),
        pytest.param("1s1s", id="a unit twice"),
        pytest.param("1w", id="unknown unit"),
        pytest.param("3S", id="upper case"),
        pytest.param("1e3s", id="exponent"),
        pytest.param("٣s", id="digits of another script"),
        pytest.param("40000d", id="over a hundred years"),
        pytest.param(True, id="boolean"),
        pytest.param(["3s"], id="list"),
        pytest.param(None, id="nothing"),
    ],
)
def test_what_is_no_duration_is_refused(value):
    with pytest.raises(Unfit):
        parse_duration(value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [(5, 'with its unit: "5s"?'), (0.5, 'with its unit: "0.5s"?'), ("0", 'zero is "0s"')],
)
def test_a_bare_number_is_refused_with_what_was_probably_meant(value, hint):
    with pytest.raises(Unfit) as refused:
        parse_duration(value)

    assert refused.value.hint == hint


@given(st.integers(0, 100 * 365 * 86400 * 1000))
def test_a_duration_written_out_is_the_same_duration(milliseconds):
    seconds = milliseconds / 1000

    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(0, 10_000_000))
def test_microseconds_survive_too(microseconds):
    seconds = round(microseconds / 1e6, 6)

    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (0.25, "250ms"), (90.0, "1m30s"), (86400.0, "1d"), (3600.5, "1h500ms")],
)
def test_a_duration_is_written_as_people_write_it(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (0, 0),
        (1024, 1024),
        ("1024", 1024),
        ("32MiB", 32 * 1024**2),
        ("32 MiB", 32 * 1024**2),
        ("4KiB", 4096),
        ("1GiB", 1024**3),
        ("32MB", 32_000_000),
        ("5kB", 5000),
        ("5KB", 5000),
        ("1gb", 10**9),
        ("7B", 7),
    ],
)
def test_a_size_is_an_integer_or_text_with_a_unit(value, size):
    assert parse_size(value) == size


@pytest.mark.parametrize(
    "value",
    ["", "MiB", "1.5MiB", "-1", "32M", "32 mebibytes", -1, 1.5, True, None, [1], "2000000GiB"],
    ids=repr,
)
def test_what_is_no_size_is_refused(value):
    with pytest.raises(Unfit):
        parse_size(value)


@given(st.integers(0, 2**50))
def test_a_size_written_out_is_the_same_size(size):
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("size", "written"),
    [(0, 0), (1000, 1000), (1024, "1KiB"), (32 * 1024**2, "32MiB"), (1024**3, "1GiB")],
)
def test_a_size_is_written_in_the_largest_unit_that_divides_it(size, written):
    assert format_size(size) == written
