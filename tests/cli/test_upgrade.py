"""`llmgw upgrade` where there is nothing to upgrade; with a gateway: `test_serve.py`."""

import subprocess
import sys

import pytest

from llmgw.cli import main
from llmgw.daemon.bulletin import Bulletin
from llmgw.daemon.places import Places


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return Places(tmp_path, tmp_path)


def test_without_a_gateway_it_fails_in_one_line(places, capsys):
    assert main(["upgrade"]) == 1
    assert capsys.readouterr().err.startswith("llmgw upgrade: no gateway runs")


def test_a_process_id_of_nobody_is_told(places, capsys):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert main(["upgrade", str(ended.pid)]) == 1
    assert "can't be signalled" in capsys.readouterr().err


def test_a_gateway_that_ends_instead_is_told(places, capsys, monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr("llmgw.cli.upgrade.is_alive", lambda pid: process.poll() is None)

    assert main(["upgrade", str(process.pid)]) == 1
    assert "has ended" in capsys.readouterr().err
    process.stdin.close()
    process.wait()


def test_the_reason_of_an_upgrade_that_failed_is_told(places, capsys, monkeypatch):
    def kill(pid, number):
        Bulletin(places).upgrade_failed("the new program ended before it was ready")

    monkeypatch.setattr("llmgw.cli.upgrade.os.kill", kill)
    monkeypatch.setattr("llmgw.cli.upgrade.is_alive", lambda pid: True)

    assert main(["upgrade", "4711"]) == 1
    assert "goes on as before: the new program ended" in capsys.readouterr().err
