"""Forms (RFC 7578, `multipart/form-data`): which model is asked for, and where it stands.

The bytes are only looked at. What two readers could take for different forms is refused: the
gateway must route by the model that the upstream will see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llmgw.core.errors import InvalidRequest
from llmgw.core.types import Body, Headers

MAX_PARTS = 1000
MAX_PART_HEAD = 16 * 1024
MAX_FIELD = 64 * 1024  # of a text field that is read
FORM = "multipart/form-data"

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110, section 5.6.2
_PARAMETER = re.compile(rf';[ \t]*({_WORD})=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))[ \t]*')
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")  # RFC 2046
_DELIMITER_ENDS = re.compile(rb"--|[ \t]*\r\n")
_TRUE = frozenset({"true", "1", "on", "yes", "t", "y"})  # what engines take for it in a form
_PLAIN = frozenset({"7bit", "8bit", "binary"})
_UTF8 = frozenset({"utf-8", "utf8", "us-ascii"})


@dataclass(frozen=True, slots=True)
class Form:
    """What a form says to the gateway; `begins` is where its first delimiter does."""

    boundary: bytes
    begins: int
    model: str = ""  # "": none, or an empty one
    model_at: int | None = None  # where the value of the field begins, if there is one
    stream: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    name: str  # as it is written, escapes included
    is_file: bool
    is_text: bool  # plain UTF-8, not encoded for the transfer
    start: int
    end: int


def parse_form(headers: Headers, body: Body) -> Form:
    """Raises `InvalidRequest`."""
    boundary = _boundary_of(headers)
    begins = _first_delimiter(body, boundary)
    model, model_at, stream = "", None, False
    for part in _parts(body, boundary, begins):
        match _meant(part.name):
            case "model":
                if model_at is not None or part.name != "model":
                    raise _refused("`model` must be given once, in lower case", param="model")
                model, model_at = _text(body, part, "model"), part.start
            case "stream":
                stream = _text(body, part, "stream").lower() in _TRUE
    return Form(boundary, begins, model, model_at, stream)


def with_model(body: Body, form: Form, model: str) -> Body:
    """Put the model into a form that has none, or an empty one: no other byte changes."""
    value = model.encode()
    if form.model_at is not None:
        return body[: form.model_at] + value + body[form.model_at :]
    head = b'\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
    part = b"--" + form.boundary + head + value + b"\r\n"
    return body[: form.begins] + part + body[form.begins :]


def _boundary_of(headers: Headers) -> bytes:
    lines = [value for name, value in headers if name == "content-type"]
    kind, parameters = _value_of(lines[0]) if len(lines) == 1 else ("", {})
    if kind != FORM:
        raise _refused(f"this route takes {FORM}")
    boundary = parameters.get("boundary", "")
    if not _BOUNDARY.fullmatch(boundary):
        raise _refused(f"the content type {FORM} must name its boundary")
    return boundary.encode("latin-1")


def _first_delimiter(body: Body, boundary: bytes) -> int:
    """A preamble before it means nothing (RFC 2046, section 5.1.1)."""
    delimiter = b"--" + boundary
    if body.startswith(delimiter):
        return 0
    at = body.find(b"\r\n" + delimiter)
    if at < 0:
        raise _refused("the form does not hold the boundary that its content type names")
    return at + 2


def _parts(body: Body, boundary: bytes, begins: int) -> Iterator[_Part]:
    delimiter = b"\r\n--" + boundary
    at = begins + len(delimiter) - 2
    for _ in range(MAX_PARTS + 1):
        ends = _DELIMITER_ENDS.match(body, at)
        if ends is None:
            raise _refused("the form has a broken boundary line")
        if ends[0] == b"--":
            return
        start = _end_of_head(body, ends.end())
        end = body.find(delimiter, start)
        if end < 0 or body.startswith(delimiter[2:], start):
            raise _refused("a part of the form does not end")
        yield _part_of(bytes(body[ends.end() : start - 4]), start, end)
        at = end + len(delimiter)
    raise _refused(f"the form has more than {MAX_PARTS} parts")


def _end_of_head(body: Body, start: int) -> int:
    at = body.find(b"\r\n\r\n", start, start + MAX_PART_HEAD)
    if at < 0:
        raise _refused("a part of the form has no end of its headers, or too many of them")
    return at + 4


def _part_of(head: bytes, start: int, end: int) -> _Part:
    fields = _fields_of(head)
    kind, parameters = _value_of(fields.get("content-disposition", ""))
    if kind != "form-data" or "name" not in parameters or "name*" in parameters:
        raise _refused("a part of the form has no name")
    charset = _value_of(fields.get("content-type", "text/plain"))[1].get("charset", "utf-8")
    encoding = fields.get("content-transfer-encoding", "binary")
    return _Part(
        name=parameters["name"],
        is_file="filename" in parameters or "filename*" in parameters,
        is_text=charset.lower() in _UTF8 and encoding.lower() in _PLAIN,
        start=start,
        end=end,
    )


def _fields_of(head: bytes) -> dict[str, str]:
    """Lower-case names; a name that comes twice, or a folded line, could be read in two ways."""
    found: dict[str, str] = {}
    for line in head.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if not re.fullmatch(_WORD, name) or not colon or name.lower() in found:
            raise _refused("a part of the form has a broken header line")
        found[name.lower()] = value.strip(" \t")
    return found


def _value_of(line: str) -> tuple[str, dict[str, str]]:
    """A value and its parameters by lower-case name; quoted ones keep their escapes."""
    kind, semicolon, _ = line.partition(";")
    found: dict[str, str] = {}
    at = len(kind)
    while at < len(line.rstrip("; \t")) and semicolon:
        parameter = _PARAMETER.match(line, at)
        if parameter is None or parameter[1].lower() in found:
            raise _refused("a header of the form has a broken parameter")
        found[parameter[1].lower()] = parameter[3] or parameter[2] or ""
        at = parameter.end()
    return kind.strip(" \t").lower(), found


def _meant(name: str) -> str:
    """Which field an upstream may take it for."""
    return re.sub(r"\\(.)", r"\1", name).lower()


def _text(body: Body, part: _Part, name: str) -> str:
    if part.is_file or not part.is_text or part.end - part.start > MAX_FIELD:
        raise _refused(f"`{name}` must be a text field in UTF-8", param=name)
    try:
        return body[part.start : part.end].decode()
    except UnicodeDecodeError:
        raise _refused(f"`{name}` must be a text field in UTF-8", param=name) from None


def _refused(message: str, *, param: str | None = None) -> InvalidRequest:
    return InvalidRequest(message, param=param)
