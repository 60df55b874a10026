"""The values of one call to an upstream."""

from llmgw.core.http import ResponseHead

HEAD = ResponseHead(200, (("via", "a"), ("content-type", "text/html"), ("via", "b")))


def test_a_header_is_found_by_its_first_line():
    assert HEAD.header("via") == "a"
    assert HEAD.header("content-type") == "text/html"


def test_a_header_that_did_not_come_is_none():
    assert HEAD.header("content-length") is None
