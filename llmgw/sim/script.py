"""Streams, event by event, in the order and shape in which a real vLLM sends them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

import orjson

from llmgw.sim import answers
from llmgw.sim.answers import Json
from llmgw.sim.ask import Api, Ask

DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """All that an answer is made of, whatever its shape."""

    api: Api
    ask: Ask
    words: Sequence[str]
    id: str
    created: int

    @property
    def text(self) -> str:
        return "".join(self.words)


@dataclass(frozen=True, slots=True)
class Script:
    """A stream in three parts: the time to first token lies before `tokens`, the pace in them."""

    preamble: tuple[bytes, ...]
    tokens: Iterator[bytes]
    tail: tuple[bytes, ...]


def build_script(reply: Reply) -> Script:
    match reply.api:
        case Api.CHAT:
            return _chat(reply)
        case Api.COMPLETIONS:
            return _completions(reply)
        case Api.RESPONSES:
            return _responses(reply)
        case Api.MESSAGES:
            return _messages(reply)
    assert_never(reply.api)


def build_body(reply: Reply) -> Json:
    """The same answer without a stream."""
    ask = reply.ask
    used = answers.usage(ask.prompt_tokens, ask.tokens)
    about = (reply.id, ask.model, reply.created)
    match reply.api:
        case Api.CHAT:
            return answers.chat(*about, reply.text, ask.finish, used)
        case Api.COMPLETIONS:
            return answers.completion(*about, reply.text, ask.finish, used)
        case Api.RESPONSES:
            return _completed(reply)
        case Api.MESSAGES:
            content: list[Json] = [{"type": "text", "text": reply.text}]
            return answers.message(*about[:2], content, _stop_reason(ask), _messages_usage(ask))
    assert_never(reply.api)


def build_failure(api: Api, body: Json) -> tuple[bytes, ...]:
    """An error inside a stream, and what the dialect sends after it."""
    match api:
        case Api.CHAT | Api.COMPLETIONS:
            return (_data(body), DONE)
        case Api.RESPONSES:
            return (_event("error", {"type": "error", **body}),)
        case Api.MESSAGES:
            return (_event("error", {"type": "error", **body}),)
    assert_never(api)


def _data(body: Json) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(body)


def _event(name: str, body: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(body))


def _finishes(reply: Reply) -> Iterator[tuple[str, str | None]]:
    """Each word with its finish reason: the last one carries text and reason together."""
    last = len(reply.words) - 1
    for at, word in enumerate(reply.words):
        yield word, reply.ask.finish if at == last else None


# --- chat completions


def _chat(reply: Reply) -> Script:
    first = _chat_chunk(reply, {"role": "assistant", "content": ""}, None)
    tokens = (_chat_chunk(reply, {"content": word}, end) for word, end in _finishes(reply))
    return Script((first,), tokens, (*_usage_chunk(reply, "chat.completion.chunk"), DONE))


def _chat_chunk(reply: Reply, delta: Json, finish: str | None) -> bytes:
    choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    if "role" not in delta:
        choice["token_ids"] = None
    return _data(_chunk(reply, "chat.completion.chunk", [choice]))


def _chunk(reply: Reply, kind: str, choices: list[Json]) -> Json:
    return {
        "id": reply.id,
        "object": kind,
        "created": reply.created,
        "model": reply.ask.model,
        "choices": choices,
    }


def _usage_chunk(reply: Reply, kind: str) -> tuple[bytes, ...]:
    if not reply.ask.include_usage:
        return ()
    used = answers.usage(reply.ask.prompt_tokens, reply.ask.tokens)
    return (_data({**_chunk(reply, kind, []), "usage": used}),)


# --- completions


def _completions(reply: Reply) -> Script:
    tokens = (_text_chunk(reply, word, end) for word, end in _finishes(reply))
    empty = _text_chunk(reply, "", None)  # incomplete UTF-8 is held back at the start
    return Script((empty,), tokens, (*_usage_chunk(reply, "text_completion"), DONE))


def _text_chunk(reply: Reply, word: str, finish: str | None) -> bytes:
    choice: Json = {
        "index": 0,
        "text": word,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
    }
    return _data(_chunk(reply, "text_completion", [choice]))


# --- responses


class _Numbered:
    """Events of a response: each has the next sequence number."""

    def __init__(self) -> None:
        self._next = 0

    def event(self, name: str, **members: object) -> bytes:
        body: Json = {"type": name, "sequence_number": self._next, **members}
        self._next += 1
        return _event(name, body)


def _responses(reply: Reply) -> Script:
    numbered = _Numbered()
    return Script(
        _response_preamble(reply, numbered),
        _response_deltas(reply, numbered),
        (),
    )


def _response_preamble(reply: Reply, numbered: _Numbered) -> tuple[bytes, ...]:
    started = answers.response(reply.id, reply.ask.model, reply.created, "in_progress", [])
    item = answers.output_message(_item_id(reply), "in_progress", [])
    return (
        numbered.event("response.created", response=started),
        numbered.event("response.in_progress", response=started),
        numbered.event("response.output_item.added", output_index=0, item=item),
        numbered.event(
            "response.content_part.added", **_part(reply), part=answers.output_text("")
        ),
    )


def _response_deltas(reply: Reply, numbered: _Numbered) -> Iterator[bytes]:
    """The tail is numbered after the deltas, so it is made in the same run."""
    part = _part(reply)
    last = len(reply.words) - 1
    for at, word in enumerate(reply.words):
        delta = numbered.event("response.output_text.delta", **part, delta=word, logprobs=[])
        yield delta if at < last else delta + _response_end(reply, numbered)


def _response_end(reply: Reply, numbered: _Numbered) -> bytes:
    text = answers.output_text(reply.text)
    part = _part(reply)
    item = answers.output_message(_item_id(reply), "completed", [text])
    return b"".join(
        (
            numbered.event("response.output_text.done", **part, text=reply.text, logprobs=[]),
            numbered.event("response.content_part.done", **part, part=text),
            numbered.event("response.output_item.done", output_index=0, item=item),
            numbered.event("response.completed", response=_completed(reply)),
        )
    )


def _completed(reply: Reply) -> Json:
    """`completed` also where the tokens ran out, as the engine says it."""
    item = answers.output_message(_item_id(reply), "completed", [answers.output_text(reply.text)])
    body = answers.response(reply.id, reply.ask.model, reply.created, "completed", [item])
    return {**body, "usage": answers.response_usage(reply.ask.prompt_tokens, reply.ask.tokens)}


def _part(reply: Reply) -> Json:
    return {"item_id": _item_id(reply), "output_index": 0, "content_index": 0}


def _item_id(reply: Reply) -> str:
    return f"msg_{reply.id}"


# --- messages


def _messages(reply: Reply) -> Script:
    return Script(
        _messages_preamble(reply),
        (_text_delta(word) for word in reply.words),
        _messages_tail(reply.ask),
    )


def _messages_preamble(reply: Reply) -> tuple[bytes, ...]:
    used = answers.message_usage(reply.ask.prompt_tokens, 0)
    started = answers.message(reply.id, reply.ask.model, [], None, used)
    block: Json = {"type": "text", "text": ""}
    return (
        _event("message_start", {"type": "message_start", "message": started}),
        _event(
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        ),
    )


def _text_delta(word: str) -> bytes:
    delta: Json = {"type": "text_delta", "text": word}
    return _event(
        "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    )


def _messages_tail(ask: Ask) -> tuple[bytes, ...]:
    delta: Json = {"stop_reason": _stop_reason(ask), "stop_sequence": None}
    return (
        _event("content_block_stop", {"type": "content_block_stop", "index": 0}),
        _event(
            "message_delta",
            {"type": "message_delta", "delta": delta, "usage": _messages_usage(ask)},
        ),
        _event("message_stop", {"type": "message_stop"}),
    )


def _messages_usage(ask: Ask) -> Json:
    return answers.message_usage(ask.prompt_tokens, ask.tokens)


def _stop_reason(ask: Ask) -> str:
    return "max_tokens" if ask.finish == "length" else "end_turn"
