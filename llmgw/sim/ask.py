"""A client's request, as far as a simulated node understands it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from llmgw.sim import answers
from llmgw.sim.answers import Refused
from llmgw.sim.state import Settings


class Api(StrEnum):
    """Whose shapes a path speaks."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"


@dataclass(frozen=True, slots=True)
class Ask:
    """What to answer: `tokens` of output, ended by `finish` (`stop` or `length`)."""

    model: str
    prompt_tokens: int
    tokens: int
    finish: str
    stream: bool = False
    include_usage: bool = False
    store: bool = True
    previous: str | None = None  # previous_response_id


_LIMITS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def parse_object(raw: bytes) -> dict[str, object]:
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as error:
        raise Refused(400, answers.bad_json(error.pos)) from None
    except (UnicodeDecodeError, RecursionError):
        raise Refused(400, answers.bad_json(0)) from None
    if not isinstance(body, dict):
        raise Refused(400, answers.bad_json(0))
    return body


def model_of(body: Mapping[str, object], loaded: tuple[str, ...]) -> str:
    """The model asked for; an engine takes its own where none is named."""
    model = body.get("model")
    if model is None and loaded:
        return loaded[0]
    return model if isinstance(model, str) else ""


def parse_ask(body: Mapping[str, object], model: str, settings: Settings) -> Ask:
    asked = next((body[name] for name in _LIMITS if isinstance(body.get(name), int)), None)
    if isinstance(asked, int) and not 0 < asked <= settings.max_model_len:
        raise Refused(400, answers.too_many_tokens(settings.max_model_len))
    limit = asked if isinstance(asked, int) else settings.tokens
    options = body.get("stream_options")
    previous = body.get("previous_response_id")
    return Ask(
        model=model,
        prompt_tokens=count_tokens(body),
        tokens=min(limit, settings.tokens),
        finish="length" if limit < settings.tokens else "stop",
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        store=body.get("store") is not False,
        previous=previous if isinstance(previous, str) else None,
    )


def text_of(value: object) -> str:
    """All text in a prompt, an input or a list of messages, in order."""
    match value:
        case str():
            return value
        case list():
            return " ".join(filter(None, map(text_of, value)))
        case dict():
            return text_of(value.get("content") or value.get("text") or "")
        case _:
            return ""


def tokens_of(text: str) -> list[int]:
    """One token for each UTF-8 byte: no vocabulary, and `/detokenize` gives the text back."""
    return list(text.encode("utf-8", "surrogatepass"))


def count_tokens(body: Mapping[str, object]) -> int:
    parts = (body.get(name) for name in ("system", "instructions", "messages", "prompt", "input"))
    return sum(len(tokens_of(text_of(part))) for part in parts)
