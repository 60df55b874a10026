"""The command line as a whole: what it offers, and how it ends."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from llmgw import __version__, cli


def test_without_a_command_the_help_is_shown_and_the_usage_was_wrong(capsys):
    assert cli.main([]) == 2

    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["serve", "--help"]])
def test_what_only_tells_something_ends_well(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)

    assert ended.value.code == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("words", [["nonsense"], ["--nonsense"], ["check", "--nonsense"]])
def test_what_is_not_understood_is_wrong_usage(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: llmgw")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_module_a_parser_and_a_summary(name, capsys):
    module = import_module(f"llmgw.cli.{name}")

    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])

    assert ended.value.code == 0
    assert callable(module.run)
    assert " ".join(cli.COMMANDS[name].split()) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("status", [0, 1])
def test_the_exit_status_is_the_commands(monkeypatch, status):
    monkeypatch.setattr("llmgw.cli.status.run", lambda arguments: status)

    assert cli.main(["status"]) == status


def test_an_interrupted_command_ends_like_one(monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("llmgw.cli.status.run", interrupted)

    assert cli.main(["status"]) == 130  # 128 and the signal's number, as shells have it


def test_a_reader_that_has_enough_is_no_error(monkeypatch):
    """As in `llmgw status | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("llmgw.cli.status.run", lambda arguments: print("much") or 0)

        assert cli.main(["status"]) == cli.READER_GONE


def test_help_and_version_load_no_command():
    """They are what scripts and completions ask for: they are to be quick."""
    code = (
        "import sys; from llmgw import cli; cli.main([]);"
        "print([one for one in sys.modules if one.startswith('llmgw.cli.')"
        " or one in ('aiohttp', 'sqlalchemy', 'uvloop')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "llmgw", "--version"], capture_output=True, text=True, timeout=30
    )

    assert done.returncode == 0
    assert done.stdout.startswith(f"llmgw {__version__}")
