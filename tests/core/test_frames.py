import pytest

from llmgw.core.frames import (
    CloseCode,
    Closed,
    MaskCheck,
    Message,
    Opcode,
    carried_over,
    close_payload,
    control_frame,
    frame_head,
    is_close_code,
    is_text,
)
from tests.fakes.wire_frames import PING, TEXT, frame


@pytest.mark.parametrize(
    ("size", "head"),
    [
        pytest.param(0, b"\x81\x00", id="empty"),
        pytest.param(125, b"\x81\x7d", id="the longest short one"),
        pytest.param(126, b"\x81\x7e\x00\x7e", id="two bytes of length"),
        pytest.param(65535, b"\x81\x7e\xff\xff", id="the longest of these"),
        pytest.param(65536, b"\x81\x7f" + (65536).to_bytes(8, "big"), id="eight bytes"),
    ],
)
def test_the_head_of_a_message_tells_its_length(size, head):
    assert frame_head(Opcode.TEXT, size) == head


def test_a_binary_message_has_an_opcode_of_its_own():
    assert frame_head(Opcode.BINARY, 1) == b"\x82\x01"


def test_a_servers_control_frame_is_plain():
    assert control_frame(Opcode.PING, b"hi") == b"\x89\x02hi"
    assert control_frame(Opcode.PONG) == b"\x8a\x00"


def test_a_clients_control_frame_is_masked():
    frame = control_frame(Opcode.CLOSE, b"\x03\xe8bye", mask=b"\x01\x02\x03\x04")

    assert frame[:6] == b"\x88\x85\x01\x02\x03\x04"
    assert bytes(one ^ frame[2 + at % 4] for at, one in enumerate(frame[6:])) == b"\x03\xe8bye"


def test_a_close_frame_carries_code_and_reason():
    assert close_payload(1001, "é") == b"\x03\xe9\xc3\xa9"


@pytest.mark.parametrize("code", [1004, 1005, 1006, 1015])
def test_codes_that_must_not_be_sent_are_not(code):
    assert close_payload(code, "x") == b""


def test_a_reason_is_cut_between_characters():
    payload = close_payload(1000, "é" * 100)

    assert len(payload) <= 125
    assert payload[2:].decode() == "é" * 61


def test_an_end_without_a_close_frame_is_an_error_on_the_other_side():
    assert carried_over(Closed(CloseCode.ABNORMAL)) == Closed(CloseCode.INTERNAL_ERROR)
    assert carried_over(Closed(4321, "why")) == Closed(4321, "why")


def test_what_an_upstream_broke_is_not_held_against_the_client():
    assert carried_over(Closed(CloseCode.TOO_BIG, broken=True)) == Closed(CloseCode.INTERNAL_ERROR)


@pytest.mark.parametrize(
    ("code", "may"),
    [
        *[(code, True) for code in (1000, 1001, 1013, 3000, 4999)],
        *[(code, False) for code in (0, 999, 1004, 1005, 1006, 1015, 5000, 65535)],
    ],
)
def test_which_codes_a_close_frame_may_carry(code, may):
    assert is_close_code(code) is may


@pytest.mark.parametrize(
    ("data", "is_utf8"),
    [
        pytest.param(b"", True, id="empty"),
        pytest.param(b"plain", True, id="ASCII"),
        pytest.param("é".encode() * 100_000, True, id="long, cut inside of a character"),
        pytest.param(b"a" + "é".encode() * 100_000, True, id="and the other way"),
        pytest.param(b"\xff", False, id="no first byte"),
        pytest.param("é".encode()[:1], False, id="a character that does not end"),
        pytest.param(b"\xed\xa0\x80", False, id="a surrogate"),
        pytest.param("é".encode() * 50_000 + b"\xff", False, id="late"),
    ],
)
def test_what_a_text_message_may_hold(data, is_utf8):
    assert is_text(data) is is_utf8


SIZES = (0, 1, 125, 126, 65535, 65536)
MASKED = b"".join(frame(TEXT, b"\x00" * size) for size in SIZES)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 4096, len(MASKED)])
def test_an_unmasked_frame_is_found_in_any_cut(cut):
    def passes(data: bytes) -> bool:
        check = MaskCheck()
        return all(check.passes(data[at : at + cut]) for at in range(0, len(data), cut))

    assert passes(MASKED)
    assert passes(MASKED + frame(PING, b"p") + MASKED)
    assert not passes(MASKED + frame(PING, b"p", mask=None))
    assert not passes(frame(TEXT, b"x" * 200, mask=None))


def test_what_was_said_is_in_no_representation():
    assert "CANARY" not in repr(Message(b"CANARY")) + repr(Closed(1000, "CANARY"))
