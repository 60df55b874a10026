import base64

import aiohttp
import pytest

from llmgw.sim.form_routes import FORM_ROUTES

TRANSCRIPTIONS = "/v1/audio/transcriptions"


async def post(http, node, path, *, file=b"\0" * 64_000, **fields):
    form = aiohttp.FormData(fields)
    if file is not None:
        form.add_field("file", file, filename="a.wav")
    response = await http.post(node.url + path, data=form)
    return response.status, await response.read()


@pytest.mark.parametrize("path", [one for one in FORM_ROUTES if "audio" in one])
async def test_a_recording_is_answered_with_text_and_its_length(node, http, path):
    status, body = await post(http, node, path, model="n")

    assert status == 200
    assert b'"text":"Hello from a.' in body
    assert b'{"type":"duration","seconds":2}' in body
    assert [(one.path, one.model, one.outcome) for one in node.seen] == [(path, "n", "served")]


@pytest.mark.parametrize("path", [one for one in FORM_ROUTES if "images" in one])
async def test_an_image_is_answered_with_an_image(node, http, path):
    status, body = await post(http, node, path, model="m")

    assert status == 200
    image = body.split(b'"b64_json":"')[1].split(b'"')[0]
    assert base64.b64decode(image).startswith(b"\x89PNG")


async def test_a_transcription_streams_word_by_word(node, http, events):
    status, body = await post(http, node, TRANSCRIPTIONS, stream="true")

    *chunks, (_, done) = events(body)
    assert (status, done) == (200, "[DONE]")
    choices = [data["choices"][0] for _, data in chunks]
    assert "".join(one["delta"]["content"] for one in choices).startswith("Hello from a.")
    assert [one["finish_reason"] for one in choices] == [None, None, None, "stop"]
    assert node.seen[0].stream


async def test_a_stream_ends_with_the_failure_that_was_switched_on(node, http, events):
    await node.inject("in_band,after=2")

    _, body = await post(http, node, TRANSCRIPTIONS, stream="true")

    assert [next(iter(data)) for _, data in events(body)[:3]] == ["id", "id", "error"]


async def test_a_stream_is_cut_where_it_was_said(node, http):
    await node.inject("cut,after=1")

    with pytest.raises(aiohttp.ClientPayloadError):
        await post(http, node, TRANSCRIPTIONS, stream="true")


@pytest.mark.parametrize("path", FORM_ROUTES)
async def test_a_model_that_is_not_loaded_is_refused(node, http, path):
    status, body = await post(http, node, path, model="other")

    assert (status, node.seen[0].outcome) == (404, "404")
    assert b'"param":"model"' in body


@pytest.mark.parametrize("path", FORM_ROUTES)
async def test_a_fault_is_met_on_every_route(node, http, path):
    await node.inject("status,status=503,times=1")

    assert (await post(http, node, path, model="m"))[0] == 503
    assert (await post(http, node, path, model="m"))[0] == 200


@pytest.mark.parametrize("path", FORM_ROUTES)
async def test_a_fault_inside_an_answer_fails_a_whole_one(node, http, path):
    await node.inject("in_band")

    assert (await post(http, node, path, model="m"))[0] == 500


async def test_a_form_needs_a_file_and_must_be_one(node, http):
    assert (await post(http, node, TRANSCRIPTIONS, file=None, model="m"))[0] == 400
    response = await http.post(node.url + TRANSCRIPTIONS, json={"model": "m"})
    assert response.status == 400
