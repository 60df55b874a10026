"""The routes of an engine that make no text: embeddings, scores and the tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import web

from llmgw.sim import answers
from llmgw.sim.answers import Json, Refused
from llmgw.sim.ask import count_tokens, model_of, parse_object, text_of, tokens_of
from llmgw.sim.breaks import cut, fail_before
from llmgw.sim.faults import INFERENCE, FaultKind
from llmgw.sim.state import Seen, SimState, now

DIMENSIONS: Final = 16
MAX_DIMENSIONS: Final = 4096


async def answer_aside(request: web.Request, state: SimState) -> Json:
    """Answer one of `SIDE_ROUTES`; faults of inference are met here too."""
    seen = Seen(request.path, request_id=request.headers.get("x-request-id"))
    state.seen.append(seen)
    body = parse_object(await request.read())
    seen.model = model_of(body, state.models)
    await _meet_fault(request, state, seen)
    if seen.model not in state.models:
        seen.end("404")
        raise Refused(404, answers.unknown_model(request.path))
    seen.end("served")
    return SIDE_ROUTES[request.path](body, seen.model, state)


async def _meet_fault(request: web.Request, state: SimState, seen: Seen) -> None:
    fault = state.faults.take(INFERENCE, seen.model)
    if fault is None:
        return
    seen.end(fault.kind.value)
    await fail_before(request, fault)
    if fault.kind is FaultKind.CUT:
        await cut(request)
    raise Refused(fault.status, answers.engine_died(fault.status))


def _embeddings(body: Json, model: str, state: SimState) -> Json:
    size = body.get("dimensions", DIMENSIONS)
    if not isinstance(size, int) or not 0 < size <= MAX_DIMENSIONS:
        message = f"dimensions must be from 1 to {MAX_DIMENSIONS}."
        raise Refused(400, answers.error(400, "BadRequestError", message, "dimensions"))
    encoded = body.get("encoding_format") == "base64"
    id_ = state.new_id("embd-")
    return answers.embeddings(id_, model, now(), _texts(body, "input"), size, encoded=encoded)


def _rerank(body: Json, model: str, state: SimState) -> Json:
    query, documents = text_of(body.get("query")), _texts(body, "documents")
    return answers.rerank(state.new_id("rerank-"), model, query, documents)


def _score(body: Json, model: str, state: SimState) -> Json:
    query, documents = text_of(body.get("text_1")), _texts(body, "text_2")
    return answers.score(state.new_id("score-"), model, now(), query, documents)


def _tokenize(body: Json, _model: str, state: SimState) -> Json:
    tokens = tokens_of(text_of(body.get("prompt")) or text_of(body.get("messages")))
    return {
        "count": len(tokens),
        "max_model_len": state.settings.max_model_len,
        "tokens": tokens,
        "token_strs": None,
    }


def _detokenize(body: Json, _model: str, _state: SimState) -> Json:
    tokens = body.get("tokens")
    try:
        text = bytes(tokens if isinstance(tokens, list) else ()).decode("utf-8", "replace")
    except (TypeError, ValueError):
        message = "tokens must be token ids."
        raise Refused(400, answers.error(400, "BadRequestError", message, "tokens")) from None
    return {"prompt": text}


def _count_tokens(body: Json, _model: str, _state: SimState) -> Json:
    return {"input_tokens": count_tokens(body)}


def _texts(body: Json, name: str) -> list[str]:
    value = body.get(name)
    return [text_of(one) for one in value] if isinstance(value, list) else [text_of(value)]


SIDE_ROUTES: Final[dict[str, Callable[[Json, str, SimState], Json]]] = {
    "/v1/embeddings": _embeddings,
    "/v1/rerank": _rerank,
    "/rerank": _rerank,
    "/v1/score": _score,
    "/score": _score,
    "/tokenize": _tokenize,
    "/detokenize": _detokenize,
    "/v1/messages/count_tokens": _count_tokens,
}
