import json

import pytest

from llmgw.core.transcript import ENTRY_BYTES, Lead, Transcript, items_of, joined

SAID = {"type": "message", "role": "user", "content": "hi"}


def items(lead: Lead) -> list[object]:
    return json.loads(b"[" + lead.items + b"]")


def test_a_text_is_a_message_and_a_list_its_items():
    assert json.loads(b"[" + items_of("hi") + b"]") == [SAID]
    assert items_of([{"a": 1}, 2]) == b'{"a":1},2'


@pytest.mark.parametrize(
    "value", [None, [], 7, {"a": 1}], ids=["none", "empty", "number", "object"]
)
def test_anything_else_is_no_item(value):
    assert items_of(value) == b""


def test_only_what_there_is_is_joined():
    assert joined(b"1", b"", b"2") == b"1,2"


def test_a_response_is_led_up_to_by_all_before_it_in_order():
    transcript = Transcript(10_000)
    transcript.add("r1", parent=None, input=["a"], output=["b"])
    transcript.add("r2", parent="r1", input=["c"], output=["d"])
    transcript.add("other", parent="r1", input=["x"])

    assert items(transcript.lead("r2")) == ["a", "b", "c", "d"]
    assert transcript.lead("r2").base is None


def test_what_is_not_known_is_named():
    transcript = Transcript(10_000)
    transcript.add("r2", parent="r1", input=["c"])

    assert transcript.lead("r2") == Lead(b'"c"', "r1")
    assert transcript.lead("r9") == Lead(b"", "r9")
    assert "r2" in transcript
    assert "r1" not in transcript


def test_the_oldest_make_room():
    transcript = Transcript(2 * ENTRY_BYTES + 100)
    for at in range(3):
        transcript.add(f"r{at}", parent=f"r{at - 1}" if at else None, input=[at])

    assert transcript.lead("r2").base == "r0"


def test_a_turn_over_the_bound_is_not_kept():
    transcript = Transcript(ENTRY_BYTES + 10)
    transcript.add("r1", parent=None, input="x" * 100)

    assert "r1" not in transcript


def test_a_response_told_twice_is_kept_once():
    transcript = Transcript(2 * ENTRY_BYTES + 10)
    for _ in range(5):
        transcript.add("r1", parent=None, input=["a"])
    transcript.add("r2", parent=None, input=["b"])

    assert "r1" in transcript


def test_a_response_that_follows_itself_ends():
    transcript = Transcript(10_000)
    transcript.add("r1", parent="r2", input=["a"])
    transcript.add("r2", parent="r1", input=["b"])

    assert transcript.lead("r1").base == "r1"


def test_half_a_surrogate_pair_is_kept_as_an_escape():
    assert items_of(["\ud800"]) == b'"\\ud800"'
