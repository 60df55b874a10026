"""The installed service on a real systemd, in the order of its life. Run by `make system`."""

import contextlib
import http.client
import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "/opt"
PROGRAM = f"{PREFIX}/bin/llmgw"
CONFIG = Path("/etc/llmgw/llmgw.toml")
NODE_PORT = 19101
ONEFILE = os.environ.get("LLMGW_ONEFILE")
GOOD = f"""
[gateway]
health_interval = "1s"
[[nodes]]
name = "a"
url = "http://127.0.0.1:{NODE_PORT}"
"""
WITHIN = 60.0

pytestmark = pytest.mark.system


def run(*words, check=True):
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0 or not check, f"{words}: {done.stdout}{done.stderr}"
    return done


def install(target="install"):
    """From wheels, or the program in one file where the environment names it."""
    program = f"ONEFILE={ONEFILE}" if ONEFILE else "WHEELS=build/wheels"
    return run("make", "-s", target, f"PREFIX={PREFIX}", program)


def shown(name, unit="llmgw.service"):
    return run("systemctl", "show", unit, "-p", name, "--value").stdout.strip()


def main_pid():
    return int(shown("MainPID"))


def journal():
    return run("journalctl", "-u", "llmgw", "-o", "cat", "--no-pager").stdout


def eventually(condition):
    end = time.monotonic() + WITHIN
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"it never came to pass; the journal:\n{journal()}")


def ask(*, tokens=3, stream=False, begun=None):
    """One chat completion on a connection of its own; the whole answer as text. `begun`: an event
    that is set when the answer has begun.
    """
    connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=WITHIN)
    body = {
        "model": "sim",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": stream,
        "max_tokens": tokens,
    }
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 200
        if begun is not None:
            begun.set()
        return answer.read().decode()


class Asking(threading.Thread):
    """A long stream, or request after request, while something else happens."""

    def __init__(self, task):
        super().__init__()
        self.task = task
        self.result = None
        self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.task()
        except (OSError, http.client.HTTPException, AssertionError) as error:
            self.error = error

    def done(self):
        self.join(WITHIN)
        assert self.error is None, f"{self.error!r}; the journal:\n{journal()}"
        return self.result


def start_stream(tokens):
    """Begin a stream of tokens at 20 a second, and wait until it has begun."""
    begun = threading.Event()
    asking = Asking(lambda: ask(tokens=tokens, stream=True, begun=begun))
    assert begun.wait(WITHIN)
    return asking


@pytest.fixture(scope="module", autouse=True)
def machine():
    """Installed, with a node to serve from; no unit runs yet."""
    assert not CONFIG.exists()
    install()
    assert CONFIG.read_text() == (ROOT / "etc/llmgw.toml").read_text()
    CONFIG.write_text(GOOD)
    command = [PROGRAM, "sim", "--port", str(NODE_PORT), "--tps", "20", "--tokens", "400"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout.readline(), "it prints its URL once it serves"
        yield
        node.terminate()


@pytest.fixture
def service():
    """Running without the socket unit."""
    run("systemctl", "stop", "llmgw.socket", "llmgw.service")
    run("systemctl", "start", "llmgw.service")


@pytest.fixture
def activated():
    """Running behind the socket unit."""
    run("systemctl", "stop", "llmgw.service")
    run("systemctl", "start", "llmgw.socket")
    run("systemctl", "start", "llmgw.service")
    yield
    run("systemctl", "stop", "llmgw.socket", "llmgw.service")


def test_an_install_leaves_a_configuration_alone():
    install("install-config")

    assert CONFIG.read_text() == GOOD


def test_the_units_are_as_systemd_wants_them():
    done = run("systemd-analyze", "verify", "llmgw.service", "llmgw.socket")

    assert "llmgw" not in done.stderr


def test_the_service_is_exposed_to_little():
    done = run("systemd-analyze", "security", "--no-pager", "llmgw.service")

    exposure = re.search(r"Overall exposure level for llmgw.service: ([0-9.]+)", done.stdout)
    assert float(exposure[1]) <= 2.0


def test_a_started_service_is_ready_and_streams(service):
    assert shown("ActiveState") == "active"
    assert shown("StatusText").startswith("serving")
    assert ask(stream=True).endswith("data: [DONE]\n\n")
    for message in ("starting gateway", "config loaded", "gateway ready"):
        assert f'"message":"{message}"' in journal()
    assert os.environ.get("LLMGW_PURE") != "0" or '"code":"compiled"' in journal()


def test_it_runs_as_its_own_user_with_files_enough_and_folders_of_its_own(service):
    status = Path(f"/proc/{main_pid()}/status").read_text()
    uid = run("id", "-u", "llmgw").stdout.strip()

    assert f"Uid:\t{uid}\t" in status
    assert "CapEff:\t0000000000000000" in status
    assert shown("LimitNOFILE") == "65536"
    assert Path("/var/lib/llmgw").stat().st_uid == int(uid)
    assert Path("/run/llmgw/llmgw.pid").read_text().strip() == str(main_pid())


def test_systemctl_reload_tells_the_truth(service):
    stream = start_stream(tokens=60)

    CONFIG.write_text(GOOD + '[log]\nlevel = "debug"\n')
    run("systemctl", "reload", "llmgw")
    good = shown("StatusText")
    CONFIG.write_text(GOOD + '[gateway]\nlisten = "twice"\n')
    refused = run("systemctl", "reload", "llmgw", check=False)
    bad = shown("StatusText")
    CONFIG.write_text(GOOD)

    assert good.startswith("serving")
    assert refused.returncode != 0
    assert bad.startswith("the last reload was refused")
    assert shown("ActiveState") == "active"
    assert '"message":"config reload failed"' in journal()
    assert stream.done().endswith("data: [DONE]\n\n")
    run("systemctl", "reload", "llmgw")


def test_a_reload_by_hand_finds_the_service(service):
    done = run(PROGRAM, "reload")

    assert done.stdout.startswith("reloaded")


def test_status_by_hand_finds_the_service(service):
    assert "1 of 1 nodes healthy" in run(PROGRAM, "status").stdout


def test_a_restart_behind_the_socket_refuses_no_connection(activated):
    restarted = threading.Event()
    answers = []

    def keep_asking():
        while not restarted.is_set():
            answers.append(ask())

    asking = [Asking(keep_asking) for _ in range(4)]
    stream = start_stream(tokens=40)
    before = main_pid()
    run("systemctl", "restart", "llmgw.service")
    answered = len(answers)
    eventually(lambda: len(answers) > answered + 10)
    restarted.set()

    for one in asking:
        one.done()
    assert stream.done().endswith("data: [DONE]\n\n")
    assert main_pid() != before


def test_an_upgrade_keeps_streams_and_tells_systemd_who_is_in_charge(activated):
    stream = start_stream(tokens=300)
    before = main_pid()

    run(PROGRAM, "upgrade")
    eventually(lambda: main_pid() not in (0, before))
    assert Path(f"/proc/{before}").exists()
    ask()

    assert stream.done().endswith("data: [DONE]\n\n")
    eventually(lambda: not Path(f"/proc/{before}").exists())
    assert shown("ActiveState") == "active"
    assert shown("NRestarts") == "0"
    run("systemctl", "reload", "llmgw")


def test_an_upgrade_that_fails_leaves_the_old_in_charge(service):
    before = main_pid()
    CONFIG.write_text("nonsense = [")

    refused = run(PROGRAM, "upgrade", check=False)
    CONFIG.write_text(GOOD)

    assert refused.returncode == 1
    assert main_pid() == before
    ask()


def test_a_stop_lets_a_stream_finish(service):
    stream = start_stream(tokens=40)

    run("systemctl", "stop", "llmgw.service")

    assert stream.done().endswith("data: [DONE]\n\n")
    assert shown("ActiveState") == "inactive"
    assert shown("Result") == "success"
    assert '"message":"gateway stopped"' in journal()


def test_a_configuration_that_cannot_be_loaded_fails_the_start_with_its_line():
    run("systemctl", "stop", "llmgw.socket", "llmgw.service")
    CONFIG.write_text('[gateway]\nlistn = ":8000"\n')

    started = run("systemctl", "start", "llmgw.service", check=False)
    CONFIG.write_text(GOOD)
    run("systemctl", "stop", "llmgw.service")

    assert started.returncode != 0
    assert "gateway.listn" in journal()
