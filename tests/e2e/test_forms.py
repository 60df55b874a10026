"""Uploads through a whole gateway: byte for byte, also to the second candidate."""

import asyncio
import os

import aiohttp
import pytest

from llmgw.sim.node import SimNode
from tests.builders import form, form_part
from tests.fakes.raw_client import RawClient, request
from tests.fakes.rawserver import Peer, RawServer, json_answer

PATH = "/v1/audio/transcriptions"
FORM = [("Content-Type", "multipart/form-data; boundary=B")]


class Node:
    """Alive, with one model; its inference answers are the test's."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    async def play(self, peer: Peer) -> None:
        while True:
            received = await peer.request()
            match received.line.split()[1]:
                case "/v1/models":
                    await peer.send(json_answer(b'{"data":[{"id":"whisper"}]}'))
                case "/health":
                    await peer.send(json_answer())
                case path if path == PATH:
                    self.bodies.append(received.body)
                    assert received.values("content-type") == [FORM[0][1]]
                    await peer.send(self.answers.pop(0))
                case _:
                    await peer.send(json_answer(status=404))


async def upload(gateway, body: bytes):
    client = await RawClient.connect(("127.0.0.1", gateway.port))
    try:
        return await client.ask(request("POST", PATH, body=body, headers=FORM))
    finally:
        client.close()


async def test_an_upload_is_replayed_byte_for_byte_at_the_second_node(serve):
    first = Node(json_answer(b"{}", status=503))
    second = Node(json_answer(b'{"text":"hi"}'))
    noise = os.urandom(3_000_000)
    body = form(form_part("file", noise, filename="a.wav"), form_part("model", "whisper"))
    async with RawServer(first.play) as one, RawServer(second.play) as other:
        gateway = await serve([f"http://127.0.0.1:{one.port}", f"http://127.0.0.1:{other.port}"])

        replies = [await upload(gateway, body)]
        if not first.bodies:  # the nodes take turns
            second.answers.append(json_answer(b'{"text":"hi"}'))
            replies.append(await upload(gateway, body))

    assert [(one.status, one.body) for one in replies] == [(200, b'{"text":"hi"}')] * len(replies)
    assert first.bodies == [body]
    assert second.bodies == [body] * len(replies)


async def test_the_default_model_is_put_into_an_upload_that_names_none(serve):
    node = Node(json_answer(b'{"text":"hi"}'))
    part = form_part("file", b"RIFF", filename="a.wav")
    async with RawServer(node.play) as server:
        gateway = await serve(
            [f"http://127.0.0.1:{server.port}"], extra='[models]\ndefault = "whisper"\n'
        )

        reply = await upload(gateway, form(part))

    assert reply.status == 200
    assert node.bodies == [form(form_part("model", "whisper"), part)]


async def test_an_upload_of_200_megabytes_is_refused_before_it_is_sent(serve):
    async with SimNode(["whisper"]) as node:
        gateway = await serve([node.url])
        client = await RawClient.connect(("127.0.0.1", gateway.port))
        size = ("Content-Length", str(200 * 1024 * 1024))

        reply = await client.ask(request("POST", PATH, headers=[*FORM, size]))

        client.close()
    assert (reply.status, reply.code, reply.closes) == (413, "request_too_large", True)
    assert not node.seen


@pytest.mark.parametrize("fault", ["status,status=503,times=1", "refuse", "model_not_found"])
async def test_a_transcription_streams_from_the_node_that_can(serve, fault):
    async with SimNode(["w"], name="a") as a, SimNode(["w"], name="b") as b:
        gateway = await serve([a.url, b.url])
        await a.inject(fault)

        async with aiohttp.ClientSession() as session:
            texts = await asyncio.gather(*(transcribe(session, gateway) for _ in range(2)))

    for text in texts:
        assert '"content":"b. "' in text
        assert text.endswith("data: [DONE]\n\n")


async def transcribe(session, gateway):
    data = aiohttp.FormData({"model": "w", "stream": "true"})
    data.add_field("file", b"RIFF" * 1000, filename="a.wav")
    async with session.post(gateway.url + PATH, data=data) as answer:
        assert answer.status == 200
        return await answer.text()
