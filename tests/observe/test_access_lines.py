"""Lines of the access log are those that the general formatter makes."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmgw.observe import access_lines, logs
from llmgw.observe.access_lines import MAX_CUTS, MAX_NUMBERS, AccessLines, Stencil

FORMATTERS = {
    "json": logs.JsonFormatter(),
    "logfmt": logs.LogfmtFormatter(),
    "journal": logs.JournalFormatter(logs.JsonFormatter()),
}
STENCIL = Stencil("POST", "/v1/chat/completions", 200, "whole", "key", "llama", "cluster/a", 1)
AT = 1_700_000_000.0625
ID = "req_00ff00000001"

every_formatter = pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
names = st.none() | st.text(max_size=20) | st.sampled_from(["llama", "a b", 'a"b', "\\", "\ud800"])
numbers = st.floats() | st.floats(0, 2) | st.integers(0, 300).map(lambda n: n / 1e6)


def general(formatter, at, stencil, *holes):
    """Written out: this is what the templates are measured by."""
    fields = {
        "time": logs.timestamp(at),
        "level": "info",
        "message": "request",
        "logger": "llmgw.access",
        **stencil.fields(*holes),
    }
    return formatter.line(fields, 20) + "\n"


@every_formatter
@given(
    stencil=st.builds(
        Stencil,
        method=st.sampled_from(["POST", "GET", "a b", "\x1b"]),
        route=st.sampled_from(["/v1/messages", "/"]),
        status=st.integers(0, 999),
        ending=st.sampled_from(["whole", "cut"]),
        key=names,
        model=names,
        assignment=names,
        attempts=st.integers(0, 9),
    ),
    holes=st.lists(
        st.tuples(
            st.integers(0, 2**63),
            numbers,
            st.from_regex(r"\Areq_[0-9a-f]{20}\Z") | st.text(max_size=20),
            numbers,
        ),
        min_size=1,
        max_size=4,
    ),
    at=st.floats(0, 4e9),
)
@example(STENCIL, [(0, 0.00005, ID, 0.000005)], AT)
@example(STENCIL, [(0, 5e-7, ID, 9.99995e-5), (0, 0.00010000004, ID, 999999999.9999999)], AT)
@example(STENCIL, [(0, -0.0, ID, math.nan), (0, math.inf, ID, 1e16), (0, 1e22, ID, -0.25)], AT)
def test_every_line_is_the_general_formatters(formatter, stencil, holes, at):
    lines = AccessLines(formatter.line)

    for _ in range(2):  # made, and remembered
        text = lines.text([(at, stencil, *one) for one in holes])
        assert text == "".join(general(formatter, at, stencil, *one) for one in holes)


@every_formatter
def test_a_usual_line_needs_the_general_formatter_once(formatter):
    seen = []
    lines = AccessLines(lambda fields, level: seen.append(1) or formatter.line(fields, level))

    text = lines.text([(AT, STENCIL, 9, 0.25, f"{ID}{n}", 0.000125) for n in range(50)])

    assert len(text.splitlines()) == 50
    assert len(seen) == 1


@pytest.mark.parametrize(
    "name", [str(access_lines._MARKS[1]), str(access_lines._MARKS[2]), "req_7f7f"]
)
def test_a_name_that_looks_like_a_mark_stays_a_name(name):
    stencil = Stencil("POST", "/v1/messages", 200, "whole", name, "llama", None, 1)

    line = json.loads(
        AccessLines(logs.JsonFormatter().line).text([(AT, stencil, 9, 0.5, ID, 0.1)])
    )

    assert (line["key"], line["bytes"], line["seconds"]) == (name, 9, 0.5)


def test_lines_of_all_fields_stand_where_they_came():
    lines = AccessLines(logs.JsonFormatter().line)
    fields = {"route": "/v1/responses", "status": 101}

    text = lines.text(
        [(AT, STENCIL, 9, 0.5, ID, 0.1), (AT, fields), (AT + 1, STENCIL, 9, 0.5, ID, 0.1)]
    )

    first, second, third = map(json.loads, text.splitlines())
    assert [one["status"] for one in (first, second, third)] == [200, 101, 200]
    assert (second["time"], third["time"]) == (
        "2023-11-14T22:13:20.062Z",
        "2023-11-14T22:13:21.062Z",
    )


def test_what_is_remembered_is_bounded():
    lines = AccessLines(logs.JsonFormatter().line)

    for n in range(MAX_CUTS + MAX_NUMBERS):
        stencil = Stencil("POST", "/", 200, "whole", f"k{n}", None, None, 0)
        line = json.loads(lines.text([(AT, stencil, 0, 1e9 + n, ID, 0.0)]))
        assert (line["key"], line["seconds"]) == (f"k{n}", 1e9 + n)

    assert len(lines._cuts) <= MAX_CUTS
    assert len(lines._numbers) == MAX_NUMBERS
