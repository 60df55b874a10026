import os

import pytest

from llmgw.daemon.bulletin import Bulletin, read_outcome
from llmgw.daemon.places import Places
from llmgw.runtime.reload import Outcome, Result

REFUSED = Outcome(3, Result.ERROR, 12.5, None, ("nodes[0].url: not a URL",))


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path, tmp_path)


@pytest.fixture
def bulletin(places):
    return Bulletin(places)


def test_what_is_written_is_read(tmp_path, places, bulletin):
    bulletin.outcome(Outcome(2, Result.SUCCESS, 9.0, "abc"))

    bulletin.outcome(REFUSED)

    assert read_outcome(places.outcome) == REFUSED
    assert list(tmp_path.iterdir()) == [places.outcome]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no file"),
        pytest.param("", id="empty"),
        pytest.param("{}", id="another object"),
        pytest.param("[1]", id="no object"),
    ],
)
def test_a_file_that_says_nothing_is_no_outcome(tmp_path, text):
    path = tmp_path / "reload.json"
    if text is not None:
        path.write_text(text)

    assert read_outcome(path) is None


def test_the_process_id_goes_with_the_process(places, bulletin):
    bulletin.pid()
    assert places.pid.read_text() == f"{os.getpid()}\n"

    bulletin.take_down()

    assert not places.pid.exists()


def test_the_process_id_of_a_successor_stays(places, bulletin):
    places.pid.write_text("1\n")

    bulletin.take_down()

    assert places.pid.read_text() == "1\n"


def test_a_folder_that_is_gone_is_told_in_the_log_and_nothing_more(tmp_path, caplog):
    Bulletin(Places(tmp_path, tmp_path / "gone")).pid()

    assert [one.message for one in caplog.records] == ["runtime file not written"]
