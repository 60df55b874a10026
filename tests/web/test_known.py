"""What is remembered of heads: those that come again are kept, and nothing new pushes them out."""

import pytest

from llmgw.core.policy import OPEN, KeyRing
from llmgw.core.routes import BY_PATH
from llmgw.core.wire import Asker
from llmgw.runtime.ports import ANYBODY
from llmgw.web import known as module
from llmgw.web.known import Heads, Known
from llmgw.web.plain import LONGEST_HEAD, plain_head

ROUTE = BY_PATH["/v1/chat/completions"]
RING = KeyRing.open()


def head(*lines):
    return "\r\n".join((f"POST {ROUTE.path} HTTP/1.1", "host: a", *lines)).encode()


class Door:
    """Reads a head that is not known, as the express door does."""

    def __init__(self):
        self.heads = Heads()
        self.read = 0

    def look(self, one):
        known = self.heads.kept.get(one) or self.heads.find(one)
        return self.learn(one) if known is None else known

    def learn(self, one):
        self.read += 1
        plain = plain_head(one)
        known = Known(
            *(RING, None, ROUTE, ROUTE.path, plain.headers, Asker(), OPEN, ANYBODY, False, {})
        )
        return self.heads.learn(one, known, plain.names)


def trace(number, *lines):
    return head(f"traceparent: {number}", *lines)


def test_a_head_is_read_once():
    door = Door()

    first, second, third = (door.look(head("x-a: b")) for _ in range(3))

    assert door.read == 1
    assert first is second is third
    assert (first.varying, first.values) == ((), ())


def test_heads_with_a_line_that_varies_are_read_twice():
    door = Door()

    looks = [door.look(trace(number)) for number in range(6)]

    assert door.read == 2
    assert [one.headers[1] for one in looks] == [("traceparent", str(n)) for n in range(6)]
    assert [(one.varying, one.values) for one in looks[1:]] == [
        ((1,), (b"%d" % number,)) for number in range(1, 6)
    ]
    assert all(one.memo is looks[1].memo for one in looks[2:])
    assert looks[0].memo is not looks[1].memo


def test_the_rest_of_such_a_head_is_its_own():
    door = Door()
    for number in range(3):
        door.look(trace(number))

    other = door.look(trace(3, "x-a: b"))

    assert door.read == 3
    assert other.headers[1:] == (("traceparent", "3"), ("x-a", "b"))


def test_what_varied_once_and_is_the_same_since_is_cut_no_more():
    """As the lines of two programs that share a key."""
    door = Door()
    looks = [door.look(trace(number)) for number in (0, 1, 0, 0, 1, 1)]

    assert door.read == 2
    assert all(one.varying == () for one in looks[2:])
    assert looks[2].memo is looks[3].memo is not looks[4].memo


def test_several_lines_vary_whenever_they_begin_to():
    door = Door()
    for number in range(4):
        door.look(trace(number, "x-id: 7"))

    looks = [door.look(trace(number, f"x-id: {number}")) for number in range(4, 9)]

    assert door.read == 3
    assert looks[-1].values == (b"8", b"8")
    assert looks[-1].headers[1:] == (("traceparent", "8"), ("x-id", "8"))


def test_kinds_of_heads_that_take_turns_are_all_known():
    door = Door()
    for number in range(12):
        for kind in range(5):
            looked = door.look(head(f"x-{kind}: {number}", f"y-{kind}: 1"))
            assert looked.headers[1:] == ((f"x-{kind}", str(number)), (f"y-{kind}", "1"))

    assert door.read == 10


def test_sets_of_lines_that_vary_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_CUTS", 2)
    door = Door()
    for kind in "abc":
        for number in range(4):
            door.look(head(f"x-{kind}: {number}"))

    assert door.read == 6
    assert len(door.heads._cuts) == 2
    for kind, value in ("a5", "c6", "a7"):
        assert door.look(head(f"x-{kind}: {value}")).values == (value.encode(),)
    assert door.read == 7  # of these `a` alone had been pushed out


@pytest.mark.parametrize(
    "value", ["", " ", "\x01", "a" * 600], ids=["no", "blank", "mark", "long"]
)
def test_a_value_that_is_not_plain_is_never_found(value):
    door = Door()
    for number in range(4):
        door.look(trace(number))

    assert door.heads.find(trace(value)) is None


def test_a_head_that_is_too_long_with_its_values_is_never_found():
    door = Door()
    filling = [f"x-{at}: {'y' * 400}" for at in range(9)]
    for number in range(4):
        door.look(trace(number, *filling))
    room = LONGEST_HEAD - len(trace("", *filling))

    assert door.heads.find(trace("z" * room, *filling)) is not None
    assert door.heads.find(trace("z" * (room + 1), *filling)) is None


def test_heads_that_are_new_each_time_push_out_none_that_came_twice(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 4)
    door = Door()
    usual, varying = head("x-a: b"), [trace(number) for number in range(9)]
    for one in (usual, usual, *varying[:4]):
        door.look(one)
    read = door.read

    for number in range(50):
        door.look(head(f"accept: {number}"))

    assert door.read == read + 50
    door.look(usual)
    assert door.look(varying[8]).values == (b"8",)
    assert door.read == read + 50
    assert len(door.heads._waiting) <= 4


def test_what_is_kept_is_bounded_and_the_oldest_goes(monkeypatch):
    monkeypatch.setattr(module, "MOST_KNOWN", 3)
    door = Door()
    for number in range(5):
        for _ in range(2):
            door.look(head(f"accept: {number}"))

    assert list(door.heads.kept) == [head(f"accept: {number}") for number in (2, 3, 4)]
    assert door.read == 5


def test_what_does_not_hold_any_more_is_read_anew():
    door = Door()
    usual = head("x-a: b")
    old = [door.look(usual) for _ in range(2)][-1]
    for number in range(4):
        door.look(trace(number))
    read = door.read

    assert door.heads.find(usual) is None  # asked for where `kept` has it, but it is over
    new = door.learn(usual)
    again = door.learn(trace(5))

    assert [door.look(usual) for _ in range(3)] == [new] * 3
    assert new is not old
    assert door.look(trace(6)).memo is again.memo
    assert door.read == read + 2
