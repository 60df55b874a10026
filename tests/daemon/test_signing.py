"""The secret of admin sessions: kept, private, and never a reason not to start."""

import logging

import pytest

from llmgw.daemon import signing
from llmgw.daemon.signing import BYTES, FILE, signing_secret


def test_it_is_made_once_and_kept(tmp_path):
    first = signing_secret(tmp_path)

    assert len(first) == BYTES
    assert signing_secret(tmp_path) == first
    assert [one.name for one in tmp_path.iterdir()] == [FILE]


def test_nobody_else_may_read_it(tmp_path):
    signing_secret(tmp_path)

    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_two_gateways_have_two(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    assert signing_secret(tmp_path / "a") != signing_secret(tmp_path / "b")


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 100])
def test_what_is_no_secret_is_replaced(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)

    secret = signing_secret(tmp_path)

    assert (tmp_path / FILE).read_bytes() == secret
    assert len(secret) == BYTES


def test_of_two_that_begin_at_once_both_have_the_same(tmp_path, monkeypatch):
    """The other one has made it between the look and the link."""
    theirs = b"t" * BYTES
    link = signing.os.link

    def late(source, target):
        target.write_bytes(theirs)
        link(source, target)

    monkeypatch.setattr(signing.os, "link", late)

    assert signing_secret(tmp_path) == theirs
    assert [one.name for one in tmp_path.iterdir()] == [FILE]


def test_where_it_cannot_be_kept_sessions_end_with_the_process(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        secret = signing_secret(tmp_path / "gone")

    assert len(secret) == BYTES
    assert "admin sessions end with this process" in caplog.text
