"""What `--version` says."""

import pytest

from llmgw import __version__
from llmgw.about import CODE, version_line
from llmgw.cli import main


def test_a_checkout_says_its_version(tmp_path):
    assert version_line(tmp_path / "none.json") == f"llmgw {__version__} ({CODE})"


def test_a_packed_program_says_its_commit_and_date(tmp_path):
    build = tmp_path / "build.json"
    build.write_text('{"commit": "abc123", "date": "2026-01-02"}')

    assert version_line(build) == f"llmgw {__version__} ({CODE}, commit abc123, 2026-01-02)"


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "no JSON"])
def test_a_broken_note_of_the_build_is_left_out(tmp_path, text):
    build = tmp_path / "build.json"
    build.write_text(text)

    assert version_line(build) == f"llmgw {__version__} ({CODE})"


def test_the_command_says_it(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == version_line()
