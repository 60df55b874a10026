"""Lines that vary: which of them may, how a head is cut around them, and how they are learnt."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llmgw
from llmgw.core import varying as module
from llmgw.core.errors import LoopDetected
from llmgw.core.fields import LONGEST_LINE
from llmgw.core.headers import CREDENTIALS, HOP_BY_HOP, refuse_loop, upstream_headers
from llmgw.core.policy import CARRIERS, token_of
from llmgw.core.varying import MOST_VARYING, Cut, Shapes, cut_out, marks_of, may_vary
from llmgw.core.wire import SESSION_HEADERS, asker_of
from llmgw.web import plain
from llmgw.web.plain import plain_head
from tests import builders

FIRST = b"POST /v1/x HTTP/1.1"
NODE = builders.node("a")
ACCOUNT = builders.account("acct")

# --- which may


@pytest.mark.parametrize(
    "name",
    [
        *("traceparent", "tracestate", "x-request-id", "x-bench-id", "idempotency-key", "x-any"),
        *("x-forwarded-for", "baggage", "user-agent", "accept-language"),
    ],
)
def test_what_nobody_here_looks_at_may_vary(name):
    assert may_vary(name)


@pytest.mark.parametrize(
    "name",
    [
        *sorted(HOP_BY_HOP | CREDENTIALS | CARRIERS),
        *SESSION_HEADERS,
        *("accept", "content-type", "content-length", "host", "origin", "via"),
        *("anthropic-version", "anthropic-beta", "openai-beta", "openai-organization"),
        *("x-stainless-retry-count", "x-llmgw-any", "sec-websocket-key"),
    ],
)
def test_what_means_something_here_never_varies(name):
    assert not may_vary(name)


ROOT = Path(llmgw.__file__).resolve().parent
READERS = (  # whatever looks at a request's header lines before its body is sent on
    *("core/headers", "core/policy", "core/wire", "core/fields", "core/pins", "core/routes"),
    *("web/head", "web/plain", "web/express", "web/known", "web/cors", "web/site", "web/body"),
    *("web/inference", "web/incoming", "web/protocol", "web/riding", "upstream/request"),
    *("runtime/answer", "runtime/asked", "runtime/express", "runtime/router", "runtime/lanes"),
)
TOKEN = re.compile(r"[A-Za-z0-9_-]{2,40}")


def words_of(name):
    """All strings in a module that could be a header's name."""
    tree = ast.parse((ROOT / f"{name}.py").read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {one.lower() for one in texts if isinstance(one, str) and TOKEN.fullmatch(one)}


VARYING_WORDS = sorted(one for one in set().union(*map(words_of, READERS)) if may_vary(one))
MEANT = (
    *("1", "0", "close", "keep-alive, x-a", "x-a", "chunked", "gzip", "100-continue", "websocket"),
    *("Bearer sk-1", "bearer sk-2", "1.1 llmgw-me", "s1", "https://a.example", "300", "false"),
    *("application/json", "multipart/form-data; boundary=a", "text/event-stream", "bytes=0-1"),
)


def read(name, value):
    """All that the gateway takes from a head, without this one line where it passes."""
    line = (name, value)
    head = plain_head(
        b"\r\n".join((FIRST, b"host: a", b"x-own-line: b", f"{name}: {value}".encode()))
    )
    assert head is not None
    assert head.headers[-1] == line
    try:
        refuse_loop(head.headers, instance="me")
    except LoopDetected:
        return "a loop"
    passed = [
        tuple(
            (key, "") if (key, text) == line else (key, text)
            for key, text in upstream_headers(
                head.headers, upstream=one, request_id="req_1", instance="me"
            )
        )
        for one in (NODE, ACCOUNT)
    ]
    return head[:2], head.names, token_of(head.headers), asker_of(head.headers), passed


@pytest.mark.parametrize("name", VARYING_WORDS)
def test_no_reader_looks_at_the_value_of_a_line_that_may_vary(name):
    """A header that is read and was forgotten in `FIXED` shows here."""
    seen = [read(name, value) for value in MEANT]

    assert all(one == seen[0] for one in seen)


def test_the_readers_words_are_found():
    assert {"traceparent", "x-request-id", "request-id", "x-real-ip"} <= set(VARYING_WORDS)
    assert all(not may_vary(one) for one in plain._UNUSUAL)


@pytest.mark.parametrize("name", ["authorization", "api-key", "x-session-id", "via"])
def test_a_reader_that_looks_is_caught(name):
    seen = [read(name, value) for value in MEANT]

    assert any(one != seen[0] for one in seen)


def test_what_the_web_floor_asks_aiohttp_for_never_varies():
    asks = r'(?:\.header|headers\.get(?:all)?)\(\s*"([A-Za-z-]+)"'
    looks = re.compile(asks + r'|"([A-Za-z-]+)" in \S*(?:headers|names)')
    found = set()
    for path in (ROOT / "web").glob("*.py"):
        found |= {(one or other).lower() for one, other in looks.findall(path.read_text())}

    assert {"origin", "expect", "transfer-encoding"} <= found
    assert not any(map(may_vary, found))


# --- the cut

HEAD = FIRST + b"\r\nhost: a\r\nx-b: 1 2\r\nX-B-C:3\r\nlast:  4 "


def test_a_head_is_cut_around_the_values():
    cut = cut_out(HEAD, (b"\r\nx-b:", b"\r\nlast:"))

    assert cut.values == (b"1 2", b"4")
    end = b"\r\n\r\n"
    assert cut.key == FIRST + b"\r\nhost: a\r\nx-b:" + end + b"\r\nX-B-C:3\r\nlast:" + end


def test_heads_that_differ_in_these_values_alone_have_one_key():
    marks = (b"\r\nx-b:", b"\r\nlast:")
    other = HEAD.replace(b"1 2", b"other").replace(b":  4 ", b":5")

    assert cut_out(other, marks) == Cut(cut_out(HEAD, marks).key, (b"other", b"5"))


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(HEAD.replace(b"last", b"lost"), id="a line is missing"),
        pytest.param(HEAD.replace(b"x-b", b"X-b"), id="in other case"),
        pytest.param(HEAD.replace(b"x-b:", b"x-b :"), id="a blank before the colon"),
        pytest.param(FIRST + b"\r\nlast: 4\r\nx-b: 1", id="in another order"),
        pytest.param(HEAD.replace(b" 1 2", b""), id="no value"),
        pytest.param(HEAD.replace(b"1 2", b" \t"), id="a blank value"),
        pytest.param(HEAD.replace(b"1 2", b"\xe9"), id="another character set"),
        pytest.param(HEAD.replace(b"1 2", b"1\n2"), id="a bare line feed"),
        pytest.param(HEAD.replace(b"1 2", b"1\r2"), id="a bare carriage return"),
        pytest.param(HEAD.replace(b"1 2", b"1\0"), id="a NUL"),
        pytest.param(HEAD.replace(b"1 2", b"1\x012"), id="a control character"),
        pytest.param(HEAD.replace(b"1 2", b"1" * (LONGEST_LINE - 4)), id="a long line"),
    ],
)
def test_what_is_not_plain_is_not_cut(head):
    assert cut_out(head, (b"\r\nx-b:", b"\r\nlast:")) is None


def test_a_line_may_be_as_long_as_any():
    value = b"1" * (LONGEST_LINE - 5)

    assert cut_out(HEAD.replace(b"1 2", value), (b"\r\nx-b:",)).values == (value,)


def test_marks_are_what_lines_begin_with():
    assert marks_of(HEAD, (1, 2)) == (b"\r\nx-b:", b"\r\nX-B-C:")
    assert marks_of(HEAD, (0, 3)) == (b"\r\nhost:", b"\r\nlast:")


LINE = st.tuples(
    st.sampled_from([b"a", b"A", b"ab", b"b", b"x-a"]),
    st.sampled_from([b":", b": ", b" :", b":\t"]),
    st.sampled_from([b"", b"1", b"2", b"a: 1", b" ", b"1 \t2", b"\r", b"\n", b"\xe9"]),
).map(b"".join)
HEADS = st.lists(LINE, max_size=5).map(lambda lines: b"\r\n".join((FIRST, *lines)))
MARKS = st.lists(
    st.sampled_from([b"\r\na:", b"\r\nA:", b"\r\nab:", b"\r\nb:", b"\r\nx-a:"]),
    min_size=1,
    max_size=3,
).map(tuple)


@given(HEADS, MARKS, HEADS, MARKS)
def test_no_key_is_that_of_a_head_that_differs_in_more(one, marks, other, other_marks):
    """Whatever they were cut around: with one key, values put into one head give the other."""
    first, second = cut_out(one, marks), cut_out(other, other_marks)
    if first is None or second is None or first.key != second.key:
        return

    pieces = first.key.split(b"\r\n\r\n")
    assert len(pieces) == len(first.values) + 1 == len(second.values) + 1
    shapes = [re.escape(piece) for piece in pieces]
    pattern = re.compile(rb"[ \t]*([!-~][\t -~]*?)[ \t]*".join(shapes), re.DOTALL)
    for head, cut in ((one, first), (other, second)):
        assert pattern.fullmatch(head).groups() == cut.values


# --- learning


def headers(**values):
    return tuple((name.replace("_", "-"), value) for name, value in values.items())


def learn(shapes, **values):
    lines = headers(**values)
    return shapes.varying(tuple(name for name, _ in lines), lines)


def test_a_line_varies_once_it_was_seen_to():
    shapes = Shapes()

    assert learn(shapes, host="a", x_id="1", x_b="c") == ()
    assert learn(shapes, host="a", x_id="2", x_b="c") == (1,)
    assert learn(shapes, host="a", x_id="3", x_b="d") == (1, 2)
    assert learn(shapes, host="a", x_id="3", x_b="d") == (1, 2)


def test_what_is_learnt_holds_for_all_that_have_these_names():
    shapes = Shapes()
    for number in "12":
        learn(shapes, authorization="one", x_id=number)

    assert learn(shapes, authorization="other", x_id="7") == (1,)
    assert learn(shapes, authorization="other", y_id="7") == ()


def test_heads_that_differ_in_a_line_that_counts_teach_nothing():
    shapes = Shapes()
    for number in range(9):
        assert learn(shapes, authorization=str(number), x_name=str(number)) == ()

    assert learn(shapes, authorization="8", x_name="another") == (1,)


def test_who_comes_in_between_does_not_matter(monkeypatch):
    monkeypatch.setattr(module, "MOST_WATCHED", 2)
    shapes = Shapes()
    for who in "abc":
        learn(shapes, authorization=who, x_id="1")

    assert learn(shapes, authorization="a", x_id="2") == ()  # forgotten
    assert learn(shapes, authorization="c", x_id="2") == (1,)


def test_beyond_some_lines_nothing_more_varies():
    shapes, few, many = Shapes(), MOST_VARYING, MOST_VARYING + 1
    for number in "12":
        varying = learn(shapes, **{f"x_{at}": number for at in range(few)})
    assert varying == tuple(range(few))

    for number in "12":
        assert learn(shapes, **{f"x_{at}": number for at in range(many)}) == ()


def test_names_that_are_watched_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_SHAPES", 2)
    shapes = Shapes()
    for name in ("x_a", "x_b", "x_c"):
        for number in "12":
            assert learn(shapes, **{name: number}) == ((0,) if number == "2" else ())

    assert len(shapes._shapes) == 2
    assert learn(shapes, x_c="3") == (0,)
    assert learn(shapes, x_a="3") == ()  # anew
    for name in ("x_d", "x_e", "x_f"):
        learn(shapes, **{name: "1"})
    assert len(shapes._first) == 2
    assert learn(shapes, x_c="4") == (0,)  # names that are new each time push out none of these
