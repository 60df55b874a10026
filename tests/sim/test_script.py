import itertools

import pytest

from llmgw.sim import answers
from llmgw.sim.ask import Api, Ask
from llmgw.sim.script import Reply, build_body, build_failure, build_script


def reply(api, *, finish="stop", include_usage=False, words=("one ", "two ")):
    ask = Ask("m", prompt_tokens=3, tokens=len(words), finish=finish, include_usage=include_usage)
    return Reply(api, ask, words, "id-1", 1_700_000_000)


def stream(events, one):
    script = build_script(one)
    return events(b"".join((*script.preamble, *script.tokens, *script.tail)))


def test_a_chat_stream_begins_with_the_role_and_ends_with_text_and_reason_together(events):
    chunks = [data for _, data in stream(events, reply(Api.CHAT))]

    deltas = [one["choices"][0] for one in chunks[:-1]]
    assert deltas[0]["delta"] == {"role": "assistant", "content": ""}
    assert [one["delta"]["content"] for one in deltas] == ["", "one ", "two "]
    assert [one["finish_reason"] for one in deltas] == [None, None, "stop"]
    assert chunks[-1] == "[DONE]"
    assert {one["object"] for one in chunks[:-1]} == {"chat.completion.chunk"}


@pytest.mark.parametrize("api", [Api.CHAT, Api.COMPLETIONS])
def test_the_usage_chunk_comes_only_when_asked_for_and_has_no_choices(events, api):
    with_usage = stream(events, reply(api, include_usage=True))
    without = stream(events, reply(api))

    assert len(with_usage) == len(without) + 1
    assert with_usage[-2][1]["choices"] == []
    assert with_usage[-2][1]["usage"]["total_tokens"] == 5


def test_a_completions_stream_begins_with_empty_text(events):
    chunks = [data for _, data in stream(events, reply(Api.COMPLETIONS, finish="length"))]

    assert [one["choices"][0]["text"] for one in chunks[:-1]] == ["", "one ", "two "]
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1] == "[DONE]"


def test_a_responses_stream_names_and_numbers_its_events(events):
    got = stream(events, reply(Api.RESPONSES, finish="length"))

    assert [name for name, _ in got] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",  # also where the tokens ran out
    ]
    assert all(name == data["type"] for name, data in got)
    assert [data["sequence_number"] for _, data in got] == list(range(10))
    assert got[3][1]["part"]["text"] == ""
    assert got[-1][1]["response"] == build_body(reply(Api.RESPONSES))


@pytest.mark.parametrize(
    ("finish", "stop"), [("stop", "end_turn"), ("length", "max_tokens")], ids=["whole", "limit"]
)
def test_a_messages_stream_opens_and_closes_its_block(events, finish, stop):
    got = stream(events, reply(Api.MESSAGES, finish=finish))

    assert [name for name, _ in got] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert all(name == data["type"] for name, data in got)
    assert got[0][1]["message"]["content"] == []
    assert got[1][1]["content_block"] == {"type": "text", "text": ""}
    assert got[5][1]["delta"]["stop_reason"] == stop
    assert got[5][1]["usage"] == {"input_tokens": 3, "output_tokens": 2}


@pytest.mark.parametrize(
    ("api", "text"),
    [
        (Api.CHAT, lambda body: body["choices"][0]["message"]["content"]),
        (Api.COMPLETIONS, lambda body: body["choices"][0]["text"]),
        (Api.RESPONSES, lambda body: body["output"][0]["content"][0]["text"]),
        (Api.MESSAGES, lambda body: body["content"][0]["text"]),
    ],
)
def test_a_whole_answer_holds_the_same_words(api, text):
    body = build_body(reply(api))

    assert text(body) == "one two "
    assert (body["id"], body["model"]) == ("id-1", "m")


@pytest.mark.parametrize(
    ("api", "names"),
    [
        (Api.CHAT, [None, None]),
        (Api.COMPLETIONS, [None, None]),
        (Api.RESPONSES, ["error"]),
        (Api.MESSAGES, ["error"]),
    ],
)
def test_an_error_inside_a_stream_has_the_shape_of_the_dialect(events, api, names):
    got = events(b"".join(build_failure(api, answers.engine_died())))

    assert [name for name, _ in got] == names
    assert got[0][1]["error"]["type"] == "InternalServerError"
    assert got[0][1]["error"]["code"] == 500
    assert (got[-1][1] == "[DONE]") is (api in (Api.CHAT, Api.COMPLETIONS))


def test_tokens_are_made_one_by_one():
    endless = reply(Api.CHAT, words=("w ",) * 100_000)

    first = list(itertools.islice(build_script(endless).tokens, 2))

    assert len(first) == 2
