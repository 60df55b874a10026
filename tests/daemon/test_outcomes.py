import pytest

from llmgw.daemon.outcomes import read_outcome, write_outcome
from llmgw.runtime.reload import Outcome, Result

REFUSED = Outcome(3, Result.ERROR, 12.5, None, ("nodes[0].url: not a URL",))


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "reload.json"
    write_outcome(path, Outcome(2, Result.SUCCESS, 9.0, "abc"))

    write_outcome(path, REFUSED)

    assert read_outcome(path) == REFUSED
    assert list(tmp_path.iterdir()) == [path]


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
