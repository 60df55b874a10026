import pytest

from llmgw.sim.answers import Refused
from llmgw.sim.ask import count_tokens, model_of, parse_ask, parse_object, text_of, tokens_of
from llmgw.sim.state import Settings

SETTINGS = Settings(tokens=10, max_model_len=100)


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        pytest.param(b'{"model":x', "body.9", id="broken at a place"),
        pytest.param(b"", "body.0", id="empty"),
        pytest.param(b"[1]", "body.0", id="no object"),
        pytest.param(b'{"a":"\xff"}', "body.0", id="no UTF-8"),
        pytest.param(b'{"a":' + b"[" * 100_000, "body.0", id="nested without end"),
    ],
)
def test_a_body_that_is_no_object_is_refused_with_its_place(raw, param):
    with pytest.raises(Refused) as refused:
        parse_object(raw)

    error = refused.value.body["error"]
    assert (refused.value.status, error["type"], error["code"]) == (400, "Bad Request", 400)
    assert error["param"] == param


@pytest.mark.parametrize(
    ("body", "loaded", "model"),
    [
        pytest.param({"model": "n"}, ("m", "n"), "n", id="named"),
        pytest.param({}, ("m", "n"), "m", id="left out: the engine's own"),
        pytest.param({}, (), "", id="left out, none loaded"),
        pytest.param({"model": 3}, ("m",), "", id="no string"),
    ],
)
def test_the_model_that_is_asked_for(body, loaded, model):
    assert model_of(body, loaded) == model


@pytest.mark.parametrize(
    ("body", "tokens", "finish"),
    [
        pytest.param({}, 10, "stop", id="no limit"),
        pytest.param({"max_tokens": 4}, 4, "length", id="a lower limit"),
        pytest.param({"max_completion_tokens": 4}, 4, "length", id="chat's newer name"),
        pytest.param({"max_output_tokens": 4}, 4, "length", id="responses' name"),
        pytest.param({"max_tokens": 50}, 10, "stop", id="a higher limit"),
    ],
)
def test_an_answer_ends_at_the_clients_limit_or_by_itself(body, tokens, finish):
    ask = parse_ask(body, "m", SETTINGS)

    assert (ask.tokens, ask.finish) == (tokens, finish)


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_limit_outside_the_context_is_refused(limit):
    with pytest.raises(Refused) as refused:
        parse_ask({"max_tokens": limit}, "m", SETTINGS)

    assert refused.value.body["error"]["type"] == "BadRequestError"
    assert refused.value.body["error"]["param"] == "max_tokens"


@pytest.mark.parametrize(
    ("body", "name", "value"),
    [
        ({"stream": True}, "stream", True),
        ({"stream": "yes"}, "stream", False),
        ({"stream_options": {"include_usage": True}}, "include_usage", True),
        ({"stream_options": None}, "include_usage", False),
        ({"store": False}, "store", False),
        ({"previous_response_id": "r"}, "previous", "r"),
        ({"previous_response_id": 3}, "previous", None),
    ],
)
def test_what_a_client_may_ask_for(body, name, value):
    assert getattr(parse_ask(body, "m", SETTINGS), name) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("hi", "hi", id="text"),
        pytest.param([{"role": "user", "content": "a"}, {"content": "b"}], "a b", id="messages"),
        pytest.param([{"content": [{"type": "text", "text": "a"}]}], "a", id="parts"),
        pytest.param([{"content": None}, 3], "", id="nothing to read"),
    ],
)
def test_text_is_found_wherever_a_dialect_puts_it(value, text):
    assert text_of(value) == text


def test_prompts_are_counted_over_all_their_parts():
    body = {"system": "ab", "messages": [{"content": "é"}], "model": "not counted"}

    assert count_tokens(body) == 4
    assert bytes(tokens_of("é")).decode() == "é"
