"""Start, stop and weigh a gateway's whole process tree, by /proc."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from peers import HERE, WORK, Peer

TICKS = os.sysconf("SC_CLK_TCK")
GATEWAY_CORE, OTHER_CORE = 0, 1


def on_core(core: int) -> list[str]:
    return ["taskset", "-c", str(core)] if (os.cpu_count() or 1) > 1 else []


@contextmanager
def upstream(*options: str, ports: str = "19001-19002") -> Iterator[subprocess.Popen[str]]:
    script = [sys.executable, str(HERE / "upstream.py"), "--ports", ports, *options]
    process = subprocess.Popen(on_core(OTHER_CORE) + script, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the upstream did not start")
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def gateway(peer: Peer, *, within: float = 60.0) -> Iterator[Gateway]:
    log = WORK / f"{peer.name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            on_core(GATEWAY_CORE) + peer.command,
            stdout=file,
            stderr=file,
            env={**os.environ, **peer.environment},
            start_new_session=True,
        )
    try:
        one = Gateway(peer, process)
        one.wait_until_ready(within)
        yield one
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


class Gateway:
    def __init__(self, peer: Peer, process: subprocess.Popen[bytes]) -> None:
        self.peer = peer
        self.process = process
        self.began = time.perf_counter()

    def wait_until_ready(self, within: float) -> float:
        """Seconds from the start to the first good answer."""
        url = f"http://127.0.0.1:{self.peer.port}{self.peer.ready}"
        while time.perf_counter() - self.began < within:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.peer.name} ended; see {WORK}/{self.peer.name}.log")
            try:
                with urllib.request.urlopen(url, timeout=2) as answer:
                    if answer.status == 200:
                        return time.perf_counter() - self.began
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{self.peer.name} did not get ready")

    def pids(self) -> list[int]:
        children: dict[int, list[int]] = {}
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                with suppress(OSError):
                    parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    children.setdefault(parent, []).append(int(path.name))
        found, left = [], [self.process.pid]
        while left:
            found.append(left.pop())
            left += children.get(found[-1], [])
        return found

    def cpu(self) -> float:
        """Seconds; exact to the nanosecond where no thread has ended meanwhile."""
        total = 0.0
        for pid in self.pids():
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    total += int((task / "schedstat").read_text().split()[0]) / 1e9
        return total

    def memory(self) -> float:
        """Proportional set size of the tree, MB."""
        total = 0
        for pid in self.pids():
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1])
        return total / 1024


def start_load(port: int, *options: str) -> subprocess.Popen[str]:
    script = [sys.executable, str(HERE / "load.py"), "--port", str(port), *options]
    return subprocess.Popen(on_core(OTHER_CORE) + script, stdout=subprocess.PIPE, text=True)


def load(port: int, *options: str) -> dict[str, Any]:
    process = start_load(port, *options)
    output, _ = process.communicate(timeout=180)
    found: dict[str, Any] = json.loads(output)
    return found
