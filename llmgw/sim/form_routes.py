"""The routes of an engine that take a form: what was said in a recording, and images."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import orjson
from aiohttp import web

from llmgw.sim import answers
from llmgw.sim.answers import Json, Refused
from llmgw.sim.ask import model_of
from llmgw.sim.breaks import cut, fail_before
from llmgw.sim.faults import INFERENCE, Fault, FaultKind
from llmgw.sim.state import Seen, SimState, now

PIXEL: Final = (  # a PNG of one grey pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
BYTES_A_SECOND: Final = 32_000  # of 16 kHz, 16 bit sound


async def answer_form(request: web.Request, state: SimState) -> web.StreamResponse:
    """Answer one of `FORM_ROUTES`; faults of inference are met here too."""
    seen = Seen(request.path, request_id=request.headers.get("x-request-id"))
    state.seen.append(seen)
    fields, file = await _read(request)
    seen.model = model_of(fields, state.models)
    seen.stream = str(fields.get("stream")).lower() == "true"
    fault = state.faults.take(INFERENCE, seen.model)
    if fault is not None:
        seen.end(fault.kind.value)
        await fail_before(request, fault)
    if seen.model not in state.models:
        seen.end("404")
        raise Refused(404, answers.unknown_model(request.path))
    if file is None:
        seen.end("400")
        raise Refused(400, answers.error(400, "BadRequestError", "A file is missing.", "file"))
    build = FORM_ROUTES[request.path]
    response = await build(request, state, seen, file, fault)
    seen.end("served")
    return response


async def _read(request: web.Request) -> tuple[Json, bytes | None]:
    """The text fields, and the first file."""
    if request.content_type != "multipart/form-data":
        message = "Field required."
        raise Refused(400, answers.error(400, "Bad Request", message, "body.file"))
    fields: Json = {}
    file: bytes | None = None
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            with value.file as held:
                file = held.read() if file is None else file
        else:
            fields.setdefault(name, value)
    return fields, file


async def _transcription(
    request: web.Request, state: SimState, seen: Seen, file: bytes, fault: Fault | None
) -> web.StreamResponse:
    words = answers.text(state.settings.name, state.settings.tokens)
    if seen.stream:
        return await _stream(request, state, seen, words, fault)
    if fault is not None:
        raise Refused(fault.status, answers.engine_died(fault.status))
    seconds = max(1, len(file) // BYTES_A_SECOND)
    usage: Json = {"type": "duration", "seconds": seconds}
    return web.json_response({"text": "".join(words).strip(), "usage": usage}, dumps=_dumps)


async def _stream(
    request: web.Request, state: SimState, seen: Seen, words: list[str], fault: Fault | None
) -> web.StreamResponse:
    """vLLM streams a transcription in chunks like those of a chat."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    id_ = state.new_id("trsc-")
    for at, word in enumerate(words):
        if fault is not None and at == fault.after:
            await _break(request, response, fault)
            return response
        finish = "stop" if at == len(words) - 1 else None
        chunk = _chunk(id_, str(seen.model), word, finish)
        await response.write(b"data: %b\n\n" % orjson.dumps(chunk))
        seen.tokens += 1
    await response.write(b"data: [DONE]\n\n")
    return response


async def _break(request: web.Request, response: web.StreamResponse, fault: Fault) -> None:
    if fault.kind is FaultKind.CUT:
        await cut(request)
    died = orjson.dumps(answers.engine_died(fault.status))
    await response.write(b"data: %b\n\ndata: [DONE]\n\n" % died)


def _chunk(id_: str, model: str, word: str, finish: str | None) -> Json:
    return {
        "id": id_,
        "object": "transcription.chunk",
        "created": now(),
        "model": model,
        "choices": [{"delta": {"content": word}, "finish_reason": finish, "stop_reason": None}],
    }


async def _image(
    request: web.Request, state: SimState, seen: Seen, file: bytes, fault: Fault | None
) -> web.StreamResponse:
    if fault is not None:
        raise Refused(fault.status, answers.engine_died(fault.status))
    data = [{"b64_json": PIXEL}]
    return web.json_response({"created": now(), "data": data}, dumps=_dumps)


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()


Build = Callable[[web.Request, SimState, Seen, bytes, Fault | None], Awaitable[web.StreamResponse]]

FORM_ROUTES: Final[dict[str, Build]] = {
    "/v1/audio/transcriptions": _transcription,
    "/v1/audio/translations": _transcription,
    "/v1/images/edits": _image,
    "/v1/images/variations": _image,
}
