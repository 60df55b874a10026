"""Forms: which model they name, what is refused, and that their bytes stay what they were."""

import contextlib
import re
from email.parser import BytesParser
from email.policy import HTTP

import pytest
from aiohttp import FormData
from hypothesis import given
from hypothesis import strategies as st

from llmgw.core.config import ModelsConfig
from llmgw.core.errors import InvalidRequest
from llmgw.core.forms import MAX_FIELD, MAX_PART_HEAD, MAX_PARTS, parse_form, with_model
from llmgw.core.routes import BY_PATH
from llmgw.core.types import RouteClass
from llmgw.core.wire import parse_call
from tests.builders import form, form_headers, form_part

HEADERS = form_headers()
MODEL = form_part("model", "whisper")
FILE = form_part("file", b"RIFF\r\n\r\n--\x00\xff", filename="a.wav", kind="audio/wav")


def parse(body, content_type="multipart/form-data; boundary=B"):
    return parse_form((("content-type", content_type),), body)


def refusal(body, content_type="multipart/form-data; boundary=B"):
    with pytest.raises(InvalidRequest) as refused:
        parse(body, content_type)
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")
    return refused.value


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(form(MODEL, FILE), id="first"),
        pytest.param(form(FILE, MODEL), id="last"),
        pytest.param(b"who reads this?\r\n" + form(FILE, MODEL), id="behind a preamble"),
        pytest.param(form(FILE, MODEL) + b'\r\nname="model"', id="before an epilogue"),
        pytest.param(form(MODEL).replace(b"--B\r\n", b"--B \t\r\n"), id="padded boundary lines"),
        pytest.param(form(b"content-disposition:form-data;name=model\r\n\r\nwhisper"), id="bare"),
        pytest.param(
            form(b'X-A: b\r\nContent-Disposition: Form-Data; NAME="model"; \r\n\r\nwhisper'),
            id="other headers, other case",
        ),
        pytest.param(
            form(form_part("model", "whisper", kind="text/plain; charset=UTF-8")), id="a charset"
        ),
        pytest.param(form(form_part("models", "x"), form_part("", "y"), MODEL), id="like names"),
        pytest.param(
            form(form_part("file", MODEL, filename='x\\"; name=\\"model'), MODEL),
            id="a file that looks like the field",
        ),
    ],
)
def test_the_model_is_found_wherever_it_stands(body):
    assert parse(body).model == "whisper"


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        pytest.param("multipart/form-data; boundary=B", "B", id="a token"),
        pytest.param('Multipart/Form-Data;charset=utf-8 ;Boundary="a b:c"', "a b:c", id="quoted"),
        pytest.param("multipart/form-data; boundary=" + "x" * 70, "x" * 70, id="the longest"),
        pytest.param("multipart/form-data; boundary=a/b=c;", "a/b=c", id="as some clients do"),
    ],
)
def test_the_boundary_is_the_content_types(content_type, boundary):
    body = form(MODEL, FILE, boundary=boundary)

    assert parse(body, content_type).model == "whisper"


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("application/json", id="JSON"),
        pytest.param("", id="nothing"),
        pytest.param("multipart/mixed; boundary=B", id="another multipart"),
        pytest.param("multipart/form-data", id="no boundary"),
        pytest.param("multipart/form-data; boundary=", id="an empty one"),
        pytest.param("multipart/form-data; boundary=B; boundary=C", id="two"),
        pytest.param("multipart/form-data; boundary=" + "x" * 71, id="too long"),
        pytest.param('multipart/form-data; boundary="B "', id="one that ends in a space"),
        pytest.param('multipart/form-data; boundary="B\\\\"', id="one with an escape"),
        pytest.param('multipart/form-data; boundary="B', id="an open quote"),
    ],
)
def test_what_is_no_form_is_refused(content_type):
    refusal(form(MODEL), content_type)


def test_two_content_types_are_none():
    two = (*form_headers(), *form_headers("C"))

    with pytest.raises(InvalidRequest, match="takes multipart/form-data"):
        parse_form(two, form(MODEL))


def test_a_head_without_lines_is_refused():
    refusal(form(b"\r\n\r\nwhisper"))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"", "does not hold the boundary", id="nothing"),
        pytest.param(b'{"model":"m"}', "does not hold the boundary", id="JSON"),
        pytest.param(form(MODEL, boundary="C"), "does not hold the boundary", id="another"),
        pytest.param(form(MODEL)[:-8], "does not end", id="cut in a part"),
        pytest.param(form(MODEL)[:-4], "broken boundary", id="cut in the last line"),
        pytest.param(form(MODEL)[:20], "no end of its headers", id="cut in a head"),
        pytest.param(form(MODEL).replace(b"\r\n", b"\n"), "broken boundary", id="bare newlines"),
        pytest.param(form(MODEL + b"\r\n--Bee"), "broken boundary", id="a longer boundary"),
        pytest.param(b"--B\r\n" + MODEL[:-7] + b"--B--", "does not end", id="no line for a value"),
        pytest.param(form(b"\r\nwhisper"), "no end of its headers", id="no headers"),
        pytest.param(form(b"X-A: b\r\n\r\nv"), "no name", id="no disposition"),
        pytest.param(form(b"nonsense\r\n\r\nv"), "broken header", id="a line without a colon"),
        pytest.param(
            form(MODEL.replace(b"\r\n", b"\r\n name=x\r\n", 1)),
            "broken header",
            id="a folded line",
        ),
        pytest.param(
            form(b'Content-Disposition: form-data; name="a"\r\n' + MODEL),
            "broken header",
            id="two dispositions",
        ),
        pytest.param(
            form(b'Content-Disposition: form-data; name="a"; name="model"\r\n\r\nv'),
            "broken parameter",
            id="two names",
        ),
        pytest.param(
            form(b"Content-Disposition: form-data; name*=utf-8''model; name=a\r\n\r\nv"),
            "no name",
            id="an encoded name",
        ),
        pytest.param(form(b"Content-Disposition: form-data\r\n\r\nv"), "no name", id="no name"),
        pytest.param(
            form(b'Content-Disposition: attachment; name="model"\r\n\r\nv'),
            "no name",
            id="another disposition",
        ),
        pytest.param(
            form(b"X: " + b"x" * MAX_PART_HEAD + b"\r\n" + MODEL), "too many", id="a large head"
        ),
        pytest.param(form(*[form_part("a", "")] * (MAX_PARTS + 1)), "more than", id="many parts"),
    ],
)
def test_a_broken_form_is_refused_with_what_is_wrong(body, says):
    assert re.search(says, refusal(body).message)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([MODEL, MODEL], id="twice the same"),
        pytest.param([form_part("model", ""), MODEL], id="an empty one and another"),
        pytest.param([form_part("Model", "whisper")], id="another case"),
        pytest.param([MODEL, form_part("MODEL", "x")], id="two spellings"),
        pytest.param([form_part("mod\\el", "whisper")], id="an escape"),
        pytest.param([form_part("model", "x", filename="m")], id="a file"),
        pytest.param([form_part("model", b"\xff")], id="not UTF-8"),
        pytest.param([form_part("model", "x", kind="text/plain; charset=utf-16")], id="utf-16"),
        pytest.param([b"Content-Transfer-Encoding: base64\r\n" + MODEL], id="base64"),
        pytest.param([form_part("model", "x" * (MAX_FIELD + 1))], id="absurdly long"),
    ],
)
def test_a_model_that_could_be_read_in_two_ways_is_refused(parts):
    assert refusal(form(*parts)).param == "model"


@pytest.mark.parametrize(
    ("value", "streams"),
    [("true", True), ("True", True), ("1", True), ("false", False), ("", False), ("2", False)],
)
def test_a_form_says_whether_it_wants_a_stream(value, streams):
    assert parse(form(MODEL, form_part("stream", value))).stream is streams


def call(body, path="/v1/audio/transcriptions", default="d/1 é", headers=HEADERS):
    return parse_call(
        BY_PATH[path],
        target=f"{path}?a=b",
        headers=headers,
        body=body,
        models=ModelsConfig(default=default),
        request_id="req_1",
    )


def test_a_call_of_a_form_keeps_the_bytes_and_goes_in_the_lane_of_its_route():
    body = form(FILE, MODEL, form_part("stream", "true"))

    made = call(body, headers=(*HEADERS, ("x-session-id", "s1")))

    assert made.body is body
    assert (made.model, made.stream, made.lane) == ("whisper", True, RouteClass.AUDIO)
    assert (made.session, made.target) == ("s1", "/v1/audio/transcriptions?a=b")


def test_a_route_without_streams_has_none_whatever_the_form_says():
    made = call(form(MODEL, form_part("stream", "true")), path="/v1/images/edits")

    assert (made.stream, made.lane) == (False, RouteClass.HTTP)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(form(FILE), id="no field"),
        pytest.param(form(form_part("model", ""), FILE), id="an empty field"),
        pytest.param(b"preamble\r\n" + form(FILE), id="behind a preamble"),
        pytest.param(b"--B--\r\n", id="an empty form"),
    ],
)
def test_the_default_model_is_put_in_and_nothing_else_changes(body):
    made = call(body)

    assert made.model == "d/1 é"
    assert parse(made.body).model == "d/1 é"
    head = b'--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
    value = made.model.encode()
    assert body in (
        made.body.replace(head + value + b"\r\n", b"", 1),
        made.body.replace(value, b"", 1),
    )


def test_without_a_default_a_form_must_name_its_model():
    with pytest.raises(InvalidRequest) as refused:
        call(form(FILE), default=None)

    assert (refused.value.code, refused.value.param) == ("model_not_specified", "model")


NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1).filter(
    lambda name: name.lower() not in ("model", "stream")
)
VALUES = st.binary(max_size=64).filter(lambda value: b"--B" not in value)


@given(st.lists(st.tuples(NAMES, VALUES)), st.text(min_size=1), st.integers(0, 9))
def test_any_form_that_is_built_by_the_rules_is_read(others, model, at):
    parts = [form_part(name, value) for name, value in others]
    parts.insert(at, form_part("model", model))

    assert parse(form(*parts)).model == model


@given(st.lists(st.tuples(NAMES, VALUES)), st.text(min_size=1).filter(lambda m: "--B" not in m))
def test_a_form_with_the_default_put_in_is_the_same_form_to_another_parser(others, model):
    body = form(*(form_part(name, value, filename="f") for name, value in others))

    filled = with_model(body, parse(body), model)

    head = b"content-type: multipart/form-data; boundary=B\r\n\r\n"
    first, *rest = BytesParser(policy=HTTP).parsebytes(head + filled).iter_parts()
    assert first["content-disposition"].params["name"] == "model"
    assert [one["content-disposition"].params["name"] for one in rest] == [n for n, _ in others]
    assert parse(filled).model == model


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_form_or_in_a_refusal(data):
    for body in (data, b"--B" + data, b"--B\r\n" + data, form(data, MODEL)):
        with contextlib.suppress(InvalidRequest):
            assert parse(body).boundary == b"B"


async def test_a_form_as_aiohttp_sends_it_is_read():
    data = FormData({"model": "whisper", "language": "de"})
    data.add_field(
        "file", b"RIFF" * 1000, filename="gr\u00fc\u00dfe.wav", content_type="audio/wav"
    )
    payload = data()
    body = bytearray()

    class Writer:
        async def write(self, chunk):
            body.extend(chunk)

    await payload.write(Writer())

    assert parse(bytes(body), payload.content_type).model == "whisper"
