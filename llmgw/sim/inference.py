"""One inference request at a simulated node: what it is answered, or which fault it meets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

import orjson
from aiohttp import web

from llmgw.sim import answers
from llmgw.sim.answers import Json, Refused
from llmgw.sim.ask import Api, Ask, model_of, parse_ask, parse_object
from llmgw.sim.breaks import cut, fail_before
from llmgw.sim.faults import INFERENCE, Fault, FaultKind
from llmgw.sim.script import Reply, Script, build_body, build_failure, build_script
from llmgw.sim.state import Seen, Settings, SimState, now

T = TypeVar("T")
_PREFIX: Final = {
    Api.CHAT: "chatcmpl-",
    Api.COMPLETIONS: "cmpl-",
    Api.RESPONSES: "resp_",
    Api.MESSAGES: "chatcmpl-",
}


async def answer(request: web.Request, state: SimState, api: Api) -> web.StreamResponse:
    """Answer, and keep in `state.seen` how it went."""
    seen = Seen(request.path, request_id=request.headers.get("x-request-id"))
    state.seen.append(seen)
    with state.at_work():
        try:
            response = await _answer(request, state, api, seen)
        except Refused as refused:
            seen.end(str(refused.status))
            raise
        except (asyncio.CancelledError, ConnectionError):
            seen.end("cancelled")  # the client left
            raise
    seen.end("served")
    return response


async def _answer(
    request: web.Request, state: SimState, api: Api, seen: Seen
) -> web.StreamResponse:
    body = parse_object(await request.read())
    seen.model = model_of(body, state.models)
    seen.stream = body.get("stream") is True
    fault = state.faults.take(INFERENCE, seen.model)
    if fault is not None:
        seen.end(fault.kind.value)
        await fail_before(request, fault)
    ask = _accepted(body, seen.model, state, api)
    reply = Reply(
        api, ask, answers.text(state.settings.name, ask.tokens), state.new_id(_PREFIX[api]), now()
    )
    if api is Api.RESPONSES and ask.store and state.settings.stores:
        state.keep_response(build_body(reply))
    state.prompt_tokens += ask.prompt_tokens
    return await _Delivery(request, state, seen, reply, fault).run()


def _accepted(body: Json, model: str, state: SimState, api: Api) -> Ask:
    if model not in state.models:
        raise Refused(404, answers.unknown_model(api.value))
    ask = parse_ask(body, model, state.settings)
    if api is Api.RESPONSES and ask.previous and ask.previous not in state.responses:
        raise Refused(404, answers.unknown_response())
    return ask


class _Delivery:
    """An answer on its way, at the node's pace, with the fault it meets on the way if any."""

    def __init__(
        self, request: web.Request, state: SimState, seen: Seen, reply: Reply, fault: Fault | None
    ) -> None:
        self._request = request
        self._state = state
        self._seen = seen
        self._reply = reply
        self._fault = fault

    async def run(self) -> web.StreamResponse:
        return await (self._stream() if self._reply.ask.stream else self._whole())

    async def _whole(self) -> web.StreamResponse:
        if self._fault is not None and self._fault.kind is FaultKind.IN_BAND:
            raise Refused(self._fault.status, answers.engine_died(self._fault.status))
        async for _ in paced(self._reply.words, self._state.settings):
            self._count()
        body = orjson.dumps(build_body(self._reply))
        headers = {"Content-Type": "application/json"}
        if self._fault is None:
            return web.Response(body=body, headers=headers)
        response = web.StreamResponse(headers=headers)
        response.content_length = len(body)
        await response.prepare(self._request)
        await response.write(body[: len(body) // 2])
        await cut(self._request)
        return response

    async def _stream(self) -> web.StreamResponse:
        script = build_script(self._reply)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(self._request)
        for event in script.preamble:
            await response.write(event)
        if await self._tokens(response, script):
            for event in script.tail:
                await response.write(event)
        await response.write_eof()
        return response

    async def _tokens(self, response: web.StreamResponse, script: Script) -> bool:
        """Stream the tokens; False if a fault ended them."""
        last = self._fault_at()
        if last == 0:
            await self._break(response)
            return False
        async for event in paced(script.tokens, self._state.settings):
            await response.write(event)
            self._count()
            if self._seen.tokens == last:
                await self._break(response)
                return False
        return True

    def _fault_at(self) -> int | None:
        """After how many tokens the fault strikes: always before the last one."""
        return None if self._fault is None else min(self._fault.after, self._reply.ask.tokens - 1)

    async def _break(self, response: web.StreamResponse) -> None:
        fault = self._fault
        if fault is None or fault.kind is FaultKind.CUT:
            await cut(self._request)
        else:
            for event in build_failure(self._reply.api, answers.engine_died(fault.status)):
                await response.write(event)

    def _count(self) -> None:
        self._seen.tokens += 1
        self._state.generation_tokens += 1


async def paced(items: Iterable[T], settings: Settings) -> AsyncIterator[T]:
    """Each item when its time has come: the first after `ttft`, then `tps` a second."""
    clock = asyncio.get_running_loop().time
    due = clock() + settings.ttft
    for item in items:
        if (wait := due - clock()) > 0:
            await asyncio.sleep(wait)
        yield item
        due += 1 / settings.tps if settings.tps else 0.0
