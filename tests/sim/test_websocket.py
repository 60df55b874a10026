"""The simulated node as a provider: what its websockets say."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import WSMsgType

from llmgw.sim.node import SimNode

CREATE = {"type": "response.create", "model": "m", "input": "hi"}


@asynccontextmanager
async def connected(path: str = "/v1/responses", *faults: str, **options):
    async with (
        SimNode(["m"], websocket=True, tokens=4, faults=faults, **options) as node,
        aiohttp.ClientSession() as session,
        session.ws_connect(node.url + path) as socket,
    ):
        yield node, socket


async def turn(socket, **members) -> list[dict]:
    await socket.send_json({**CREATE, **members})
    events = [await socket.receive_json()]
    while events[-1]["type"] not in ("response.completed", "error"):
        events.append(await socket.receive_json())
    return events


async def test_a_turn_is_the_events_of_its_stream():
    async with connected() as (node, socket):
        events = await turn(socket)
        nested = await turn(socket, model=None, response={"model": "m", "input": "x"})

        kinds = [one["type"] for one in events]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert kinds.count("response.output_text.delta") == 4
        assert nested[-1]["type"] == "response.completed"
        assert [one.outcome for one in node.seen] == ["served", "served"]


async def test_a_later_turn_may_continue_on_an_earlier_one_of_its_own():
    async with connected() as (_, socket):
        first = (await turn(socket))[-1]["response"]["id"]

        known = await turn(socket, previous_response_id=first)
        unknown = await turn(socket, previous_response_id="resp_x")

        assert known[-1]["type"] == "response.completed"
        assert unknown[0]["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("fault", "status", "visible"),
    [
        ("model_not_found", 404, 0),
        ("engine_not_found", 404, 0),
        ("status,status=503", 503, 0),
        ("in_band,status=500,after=2", 500, 2),
        ("in_band,status=500", 500, 0),
    ],
)
async def test_a_fault_is_an_error_frame(fault, status, visible):
    async with connected("/v1/responses", f"{fault},times=1") as (_, socket):
        events = await turn(socket)
        again = await turn(socket)

        assert events[-1]["status"] == status
        kinds = [one["type"] for one in events]
        assert kinds.count("response.output_text.delta") == visible
        assert again[-1]["type"] == "response.completed"


@pytest.mark.parametrize("fault", ["reset", "cut", "cut,after=1"])
async def test_a_fault_that_ends_the_connection(fault):
    async with connected("/v1/responses", fault) as (_, socket):
        await socket.send_json(CREATE)
        found = await socket.receive()
        while found.type is WSMsgType.TEXT:
            found = await socket.receive()

        assert found.type in (WSMsgType.CLOSED, WSMsgType.ERROR, WSMsgType.CLOSE)


@pytest.mark.parametrize("frame", ["nonsense", "[]", json.dumps({**CREATE, "model": "other"})])
async def test_what_is_not_served_is_an_error_frame(frame):
    async with connected() as (_, socket):
        await socket.send_str(frame)

        event = await socket.receive_json()
        while event["type"] not in ("response.completed", "error"):
            event = await socket.receive_json()
        assert (event["type"] == "error") is ("other" in frame)


async def test_binary_ends_a_socket_of_turns():
    async with connected() as (_, socket):
        await socket.send_bytes(b"x")
        await socket.receive()

        assert socket.close_code == 1003


async def test_a_realtime_session():
    async with connected("/v1/realtime?model=m") as (node, socket):
        await socket.send_json({"type": "session.update"})
        await socket.send_json({"type": "input_audio_buffer.append"})
        await socket.send_bytes(b"audio")
        await socket.send_json({"type": "response.create"})

        kinds = []
        while (found := await socket.receive()).type is not WSMsgType.CLOSED:
            kinds.append("binary" if found.type is WSMsgType.BINARY else found.json()["type"])
            if kinds[-1] == "response.done":
                break
        assert kinds[:3] == ["session.created", "session.updated", "binary"]
        assert kinds.count("response.output_text.delta") == 4
        assert node.seen[0].path == "/v1/realtime"


@pytest.mark.parametrize(
    ("query", "fault", "status"),
    [("?model=other", (), 404), ("?model=m", ("status,status=503",), 503)],
)
async def test_a_realtime_session_that_is_refused(query, fault, status):
    async with (
        SimNode(["m"], websocket=True, faults=fault) as node,
        aiohttp.ClientSession() as session,
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{node.url}/v1/realtime{query}")

        assert refused.value.status == status


async def test_an_engine_answers_the_handshake_with_403():
    async with SimNode(["m"]) as node, aiohttp.ClientSession() as session:
        for path in ("/v1/responses", "/v1/realtime?model=m"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(node.url + path)
            assert refused.value.status == 403


async def test_an_engine_that_keeps_no_responses_knows_none():
    async with SimNode(["m"], stores=False) as node, aiohttp.ClientSession() as session:
        url = f"{node.url}/v1/responses"
        answer = await (await session.post(url, json={"model": "m", "input": "x"})).json()
        again = {"model": "m", "input": "y", "previous_response_id": answer["id"]}

        refused = await session.post(url, json=again)

        assert refused.status == 404
        assert (await refused.json())["error"]["param"] == "response_id"
