"""Lists that were read before: the same bytes, the same names, the same object."""

import pytest

from llmgw.core.fleet import place_of
from llmgw.core.listing import Page
from llmgw.upstream import known_lists
from llmgw.upstream.known_lists import KnownLists
from tests.builders import node

A, B = place_of(node("a", 1)), place_of(node("b", 2))
BODY = b'{"data":[{"id":"m"}]}'


def page(*names: str) -> Page:
    return Page(names)


def test_a_body_that_was_never_read_is_not_known():
    known = KnownLists()
    assert known.find(A, BODY) is None

    known.keep(A, BODY, page("m"))

    assert known.find(B, BODY) is None


def test_the_same_bytes_give_the_page_that_they_gave():
    known = KnownLists()
    kept = known.keep(A, BODY, page("m"))

    assert known.find(A, bytes(bytearray(BODY))) is kept


@pytest.mark.parametrize("body", [BODY + b" ", BODY.replace(b"m", b"n"), b""])
def test_other_bytes_are_read(body):
    known = KnownLists()
    known.keep(A, BODY, page("m"))

    assert known.find(A, body) is None


def test_only_the_last_body_counts():
    known = KnownLists()
    known.keep(A, BODY, page("m"))
    known.keep(A, b"2", page("n"))

    assert known.find(A, BODY) is None


def test_equal_pages_are_one_object_at_one_upstream_and_at_many():
    known = KnownLists()
    first = known.keep(A, BODY, page("m"))

    assert known.keep(A, b"stamped anew", page("m")) is first
    assert known.keep(B, b"of another node", page("m")) is first
    assert known.keep(B, b"another list", page("n")) == page("n")


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(known_lists, "MOST_KEPT", 10)
    known = KnownLists()
    for number in range(25):
        known.keep(place_of(node(f"n{number}")), BODY, page(f"m{number}"))

    assert known.find(place_of(node("n0")), BODY) is None
    assert known.find(place_of(node("n24")), BODY) == page("m24")
