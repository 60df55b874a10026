"""Rows on disk while the database is away."""

import errno
import os
from pathlib import Path

import pytest

from llmgw.store import spool as spool_module
from llmgw.store.rows import Row, RowKind
from llmgw.store.spool import Spool, SpoolFull

ROWS = [
    Row(RowKind.PIN, ("p1", "blue/a", 1.5)),
    Row(RowKind.REQUEST, ("r1", None, True, 3, "models/é\n")),
]


@pytest.fixture
def own(tmp_path):
    spool = Spool(tmp_path, "own")
    yield spool
    spool.close()


def left_behind(tmp_path: Path, rows=ROWS) -> Path:
    dead = Spool(tmp_path, "dead")
    dead.append(rows)
    dead.close()
    return tmp_path / "spool" / "dead.rows"


def test_rows_come_back_as_they_were_and_in_order(own):
    own.append(ROWS[:1])
    own.append(ROWS[1:])

    assert own.adopt()
    assert list(own.rows()) == ROWS


def test_nothing_is_made_before_there_is_something_to_keep(own, tmp_path):
    assert not own.adopt()
    assert list(tmp_path.iterdir()) == []


def test_only_its_user_may_read_it(own, tmp_path):
    own.append(ROWS)

    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "spool" / "own.rows").stat().st_mode & 0o777 == 0o600


def test_what_was_replayed_is_gone(own):
    own.append(ROWS)
    own.clear()

    assert not own.adopt()
    own.append(ROWS[:1])
    assert list(own.rows()) == ROWS[:1]


def test_rows_of_a_process_that_is_gone_are_taken_over(own, tmp_path):
    path = left_behind(tmp_path)

    assert own.adopt()
    assert own.adopt()
    assert list(own.rows()) == ROWS
    own.clear()
    assert not path.exists()


def test_what_was_taken_over_and_not_replayed_is_left_for_the_next(own, tmp_path):
    left_behind(tmp_path)
    own.adopt()
    own.close()

    later = Spool(tmp_path, "later")
    assert later.adopt()
    assert list(later.rows()) == ROWS
    later.close()


def test_rows_of_a_process_that_lives_are_its_own(own, tmp_path):
    living = Spool(tmp_path, "living")
    living.append(ROWS)

    assert not own.adopt()
    living.close()


def test_a_line_torn_by_a_crash_is_left_out(own, tmp_path):
    path = left_behind(tmp_path)
    path.write_bytes(path.read_bytes()[:-4])

    assert own.adopt()
    assert list(own.rows()) == ROWS[:1]


def test_a_line_that_is_not_ours_costs_no_other(own, tmp_path):
    path = left_behind(tmp_path)
    path.write_bytes(b'{"a": 1}\n[1, 2, 3]\nnonsense\n' + path.read_bytes())

    own.adopt()
    assert list(own.rows()) == ROWS


def test_a_full_spool_takes_all_of_it_or_nothing(tmp_path):
    spool = Spool(tmp_path, "own", limit=100)
    spool.append(ROWS)

    with pytest.raises(SpoolFull):
        spool.append(ROWS * 3)
    assert list(spool.rows()) == ROWS
    spool.close()


def test_a_full_disk_leaves_no_half_line(own, monkeypatch):
    own.append(ROWS[:1])
    original = os.write

    def half(file: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(file, data[:-5])

    monkeypatch.setattr(spool_module.os, "write", half)
    with pytest.raises(SpoolFull, match="No space left"):
        own.append(ROWS)
    monkeypatch.undo()

    own.append(ROWS[1:])
    assert list(own.rows()) == ROWS


def test_without_a_folder_nothing_is_kept():
    spool = Spool(None, "own")

    with pytest.raises(SpoolFull):
        spool.append(ROWS)
    assert not spool.adopt()
    spool.close()
