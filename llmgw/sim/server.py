"""The HTTP side of a simulated node: vLLM's routes, and `/_sim` to switch faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import orjson
from aiohttp import web

from llmgw.sim import answers
from llmgw.sim.answers import Json, Refused
from llmgw.sim.ask import Api
from llmgw.sim.breaks import HANG
from llmgw.sim.faults import HEALTH, LISTING, Fault, FaultKind, InvalidFault, build_fault
from llmgw.sim.form_routes import FORM_ROUTES, answer_form
from llmgw.sim.inference import answer
from llmgw.sim.side_routes import SIDE_ROUTES, answer_aside
from llmgw.sim.state import VERSION, SimState, exposition, now
from llmgw.sim.websocket import serve_realtime, serve_responses

REALTIME: Final = "/v1/realtime"
MAX_BODY: Final = 64 * 1024 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Controls(Protocol):
    """Who can do what a fault asks for, the listener included."""

    async def inject(
        self, *faults: Fault | str, asking: asyncio.BaseTransport | None = None
    ) -> None:
        """Switch them on; the connection of whoever asks is spared."""

    async def clear(self) -> None: ...


STATE: Final = web.AppKey("state", SimState)
CONTROLS: Final = web.AppKey("controls", Controls)


def build_app(state: SimState, controls: Controls) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_engine_errors])
    app[STATE] = state
    app[CONTROLS] = controls
    app.on_response_prepare.append(_as_uvicorn)
    app.add_routes(
        [
            web.get("/health", _health),
            web.get("/v1/models", _models),
            web.get("/metrics", _metrics),
            web.get("/version", _version),
            web.get("/load", _load),
            *(web.post(api.value, _inference) for api in Api),
            web.get("/v1/responses", _upgrade),
            web.get(REALTIME, _upgrade),
            web.get("/v1/responses/{id}", _response),
            web.post("/v1/responses/{id}/cancel", _response),
            *(web.post(path, _side_route) for path in SIDE_ROUTES),
            *(web.post(path, _form_route) for path in FORM_ROUTES),
            web.get("/_sim/faults", _show_faults),
            web.post("/_sim/faults", _add_faults),
            web.delete("/_sim/faults", _clear_faults),
            web.get("/_sim/requests", _requests),
        ]
    )
    return app


# --- the engine


async def _health(request: web.Request) -> web.StreamResponse:
    fault = request.app[STATE].faults.take(HEALTH)
    if fault is not None and fault.kind is FaultKind.HANG_HEALTH:
        await asyncio.sleep(HANG)
    return web.Response(status=200 if fault is None else 503)


async def _models(request: web.Request) -> web.StreamResponse:
    state = request.app[STATE]
    models = state.models
    match fault := state.faults.take(LISTING):
        case Fault(kind=FaultKind.HANG_LIST):
            await asyncio.sleep(HANG)
        case Fault(kind=FaultKind.LIST_ERROR):
            return _json(answers.engine_died(fault.status), fault.status)
        case Fault(kind=FaultKind.EMPTY_LIST):
            models = ()
    return _json(answers.model_list(models, now(), state.settings.max_model_len))


async def _metrics(request: web.Request) -> web.StreamResponse:
    return web.Response(text=exposition(request.app[STATE]), content_type="text/plain")


async def _version(request: web.Request) -> web.StreamResponse:
    return _json({"version": VERSION})


async def _load(request: web.Request) -> web.StreamResponse:
    return _json({"server_load": request.app[STATE].running})


async def _inference(request: web.Request) -> web.StreamResponse:
    return await answer(request, request.app[STATE], Api(request.path))


async def _side_route(request: web.Request) -> web.StreamResponse:
    return _json(await answer_aside(request, request.app[STATE]))


async def _form_route(request: web.Request) -> web.StreamResponse:
    return await answer_form(request, request.app[STATE])


async def _upgrade(request: web.Request) -> web.StreamResponse:
    """Where an engine has no websocket route its framework answers a handshake with 403."""
    if request.headers.get("upgrade", "").lower() != "websocket":
        raise web.HTTPMethodNotAllowed("GET", ["POST"])
    state = request.app[STATE]
    if state.settings.websocket:
        serve = serve_realtime if request.path == REALTIME else serve_responses
        return await serve(request, state)
    response = web.Response(status=403)
    response.force_close()
    return response


async def _response(request: web.Request) -> web.StreamResponse:
    found = request.app[STATE].responses.get(request.match_info["id"])
    if found is None:
        raise Refused(404, answers.unknown_response())
    return _json(found)


# --- its faults


async def _show_faults(request: web.Request) -> web.StreamResponse:
    return _json({"faults": [one.to_json() for one in request.app[STATE].faults.active]})


async def _add_faults(request: web.Request) -> web.StreamResponse:
    try:
        given = await request.json()
        faults = [build_fault(one) for one in (given if isinstance(given, list) else [given])]
    except InvalidFault as error:
        return _json({"error": str(error)}, 400)
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError, ValueError):
        return _json({"error": "a JSON object, or a list of them, is expected"}, 400)
    await request.app[CONTROLS].inject(*faults, asking=request.transport)
    response = await _show_faults(request)
    response.force_close()  # `refuse` must leave no connection but that of this answer
    return response


async def _clear_faults(request: web.Request) -> web.StreamResponse:
    await request.app[CONTROLS].clear()
    return await _show_faults(request)


async def _requests(request: web.Request) -> web.StreamResponse:
    return _json({"requests": [one.to_json() for one in request.app[STATE].seen]})


# --- how it answers


@web.middleware
async def _engine_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        return _json(refused.body, refused.status)
    except web.HTTPException as error:
        return _json({"detail": error.reason}, error.status)


async def _as_uvicorn(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "uvicorn"


def _json(body: Json, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(body), status=status, headers={"Content-Type": "application/json"}
    )
