import pytest

from llmgw.core.frames import (
    CloseCode,
    Closed,
    Message,
    Opcode,
    carried_over,
    close_payload,
    control_frame,
    frame_head,
)


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


def test_what_was_said_is_in_no_representation():
    assert "CANARY" not in repr(Message(b"CANARY")) + repr(Closed(1000, "CANARY"))
