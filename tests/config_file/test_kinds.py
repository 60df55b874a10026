from datetime import UTC, date, datetime

import pytest

from llmgw.config_file import kinds
from llmgw.config_file.faults import Unfit
from llmgw.core.config import Listen
from llmgw.core.types import Strategy
from tests.config_file.texts import SCRYPT

HEX = "0123456789abcdef" * 4
MOMENT = datetime(2030, 1, 31, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (kinds.TEXT, "a b", "a b"),
        (kinds.NAME, "gpu-1", "gpu-1"),
        (kinds.BOOL, True, True),
        (kinds.integer(0), 0, 0),
        (kinds.PORT, 65535, 65535),
        (kinds.SHARE, 0.5, 0.5),
        (kinds.DURATION, "3s", 3.0),
        (kinds.PAUSE, "0s", 0.0),
        (kinds.SIZE, "4MiB", 4 * 1024**2),
        (kinds.LISTEN, ":8000", (Listen(port=8000),)),
        (kinds.LISTEN, [":8000", "unix:/x"], (Listen(port=8000), Listen(path="/x"))),
        (kinds.LISTEN, [], ()),
        (kinds.DIGEST, f"sha256:{HEX}", HEX),
        (kinds.MOMENT, "2030-01-31T00:00:00Z", MOMENT),
        (kinds.HEADERS, {"x-team": "search"}, (("x-team", "search"),)),
        (kinds.LABELS, {"team": "search"}, (("team", "search"),)),
        (kinds.PATH, "/health", "/health"),
        (kinds.PASSWORD, SCRYPT, SCRYPT),
        (kinds.STRATEGY, "least_load", Strategy.LEAST_LOAD),
        (kinds.names(), ["b", "a"], ("b", "a")),
        (kinds.choice("x", "y"), "y", "y"),
        (kinds.off_or(kinds.DURATION), "off", None),
        (kinds.off_or(kinds.DURATION), "3s", 3.0),
    ],
    ids=lambda one: one.name if isinstance(one, kinds.Kind) else repr(one),
)
def test_a_value_is_read_and_written_back(kind, written, value):
    assert kind.parse(written) == value
    assert kind.show(value) == written


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        pytest.param(kinds.SHARE, 1, 1.0, id="a share may be an integer"),
        pytest.param(kinds.names(), ["a", "b", "a"], ("a", "b"), id="names twice count once"),
        pytest.param(kinds.HEADERS, {"X-Team": "s"}, (("x-team", "s"),), id="lower-case headers"),
        pytest.param(kinds.MOMENT, "2030-01-31", MOMENT, id="a date as text"),
        pytest.param(kinds.MOMENT, date(2030, 1, 31), MOMENT, id="a date of TOML"),
        pytest.param(kinds.MOMENT, datetime.fromisoformat("2030-01-31"), MOMENT, id="UTC"),
        pytest.param(kinds.MOMENT, "2030-01-31T01:00:00+01:00", MOMENT, id="an offset"),
    ],
)
def test_other_forms_of_the_same_value(kind, written, value):
    assert kind.parse(written) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (kinds.TEXT, 5),
        (kinds.TEXT, " "),
        (kinds.TEXT, "a\nb"),
        (kinds.NAME, " a"),
        (kinds.NAME, "a" * 201),
        (kinds.NAME, "a\u200bb"),
        (kinds.BOOL, "true"),
        (kinds.BOOL, 1),
        (kinds.integer(), 0),
        (kinds.integer(), True),
        (kinds.integer(), 1.0),
        (kinds.integer(), 2**31),
        (kinds.PORT, 65536),
        (kinds.SHARE, 1.1),
        (kinds.SHARE, True),
        (kinds.SHARE, "0.5"),
        (kinds.SHARE, float("nan")),
        (kinds.DURATION, "0s"),
        (kinds.SIZE, 0),
        (kinds.LISTEN, 8000),
        (kinds.LISTEN, [8000]),
        (kinds.LISTEN, [":1", ":1"]),
        (kinds.DIGEST, HEX),
        (kinds.DIGEST, f"sha256:{HEX.upper()}"),
        (kinds.DIGEST, f"sha256:{HEX}\n"),
        (kinds.DIGEST, 5),
        (kinds.MOMENT, "tomorrow"),
        (kinds.MOMENT, 5),
        (kinds.HEADERS, ["x"]),
        (kinds.HEADERS, {"x y": "1"}),
        (kinds.HEADERS, {"x": 1}),
        (kinds.HEADERS, {"x": "a\r\nb: c"}),
        (kinds.HEADERS, {"x": "a\x00"}),
        (kinds.HEADERS, {"x": ""}),
        (kinds.HEADERS, {"x": "€"}),
        (kinds.HEADERS, {"Authorization": "Bearer x"}),
        (kinds.HEADERS, {"Content-Length": "5"}),
        (kinds.LABELS, "x"),
        (kinds.LABELS, {"team": 5}),
        (kinds.PATH, "health"),
        (kinds.PATH, "/a b"),
        (kinds.PASSWORD, "hunter2"),
        (kinds.PASSWORD, 5),
        (kinds.PASSWORD, "scrypt:x"),
        (kinds.PASSWORD, SCRYPT.replace("16384", "16385")),
        (kinds.STRATEGY, "random"),
        (kinds.names(), "a"),
        (kinds.names(), [5]),
        (kinds.names({"a"}), ["b"]),
        (kinds.choice("x"), 5),
    ],
    ids=lambda one: one.name if isinstance(one, kinds.Kind) else ascii(one)[:40],
)
def test_a_value_of_no_such_kind_is_refused(kind, value):
    with pytest.raises(Unfit):
        kind.parse(value)


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        (kinds.TEXT, 5, 'in quotes: "5"?'),
        (kinds.integer(), "5", "without quotes"),
        (kinds.names(), "a", '["a"]?'),
        (kinds.names({"/v1/responses"}), ["/v1/response"], 'did you mean "/v1/responses"?'),
        (kinds.STRATEGY, "round-robin", 'did you mean "round_robin"?'),
        (kinds.choice("json", "logfmt"), "Json", 'did you mean "json"?'),
    ],
    ids=repr,
)
def test_a_refusal_says_what_was_probably_meant(kind, value, hint):
    with pytest.raises(Unfit) as refused:
        kind.parse(value)

    assert refused.value.hint == hint


@pytest.mark.parametrize("kind", [kinds.DIGEST, kinds.PASSWORD], ids=lambda kind: kind.name)
def test_what_may_be_a_secret_is_not_quoted(kind):
    with pytest.raises(Unfit) as refused:
        kind.parse("CANARY")

    assert "CANARY" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("headers", [{"x": "CANARY\n"}, {"x-goog-api-key": "CANARY"}])
def test_a_header_value_is_not_quoted(headers):
    with pytest.raises(Unfit) as refused:
        kinds.HEADERS.parse(headers)

    assert "CANARY" not in refused.value.message + refused.value.hint
