"""What websockets cost: turns, idle sockets, long messages, and coming and going.

    python bench/websockets.py [turns] [idle] [large] [churn]

Prints one JSON object for each finding and writes them all to `bench/results/websockets.json`.
Everything that the gateway can do is on: keys, circuits, rows in SQLite, metrics, access log.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from peers import HERE, WORK, Peer, llmgw_config
from processes import OTHER_CORE, Gateway, gateway, on_core

RESULTS = HERE / "results"
PORT, METRICS_PORT = 18060, 18160
DIRECT, PLAIN = 19061, 19062
MODELS = {"direct": "m1", "bridged": "m2"}
IDLE_LIMIT = 40.0  # KiB
TELLS = WORK / "websockets.tells"
MIB = 1024 * 1024


@contextmanager
def running() -> Iterator[Gateway]:
    """The gateway between a node that takes websockets and one that does not."""
    WORK.mkdir(exist_ok=True)
    config = llmgw_config(WORK / "websockets.toml", ports=(DIRECT, PLAIN))
    text = config.read_text().replace(":18000", f":{PORT}").replace(":18100", f":{METRICS_PORT}")
    config.write_text(text)
    state = WORK / "websockets.state"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    command = [sys.executable, str(HERE / "websockets.py"), "serve", str(config)]
    peer = Peer("websockets", command, PORT, "/readyz", {"STATE_DIRECTORY": str(state)})
    with ExitStack() as stack:
        for port, more in ((DIRECT, []), (PLAIN, ["--plain"])):
            stack.enter_context(node(port, *more))
        one = stack.enter_context(gateway(peer))
        time.sleep(1)
        yield one


@contextmanager
def node(port: int, *more: str) -> Iterator[None]:
    process = _peer("node", "--port", str(port), *more)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the node did not start")
        yield
    finally:
        process.terminate()
        process.wait(10)


def clients(*options: str, what: str = "clients") -> dict[str, Any]:
    output, _ = _peer(what, "--port", str(PORT), *options).communicate(timeout=600)
    found: dict[str, Any] = json.loads(output)
    return found


@contextmanager
def held(*options: str) -> Iterator[None]:
    """Clients that have had their turns and stay."""
    process = _peer("clients", "--port", str(PORT), "--hold", *options)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise RuntimeError("the clients did not get through")
    try:
        yield
    finally:
        process.communicate("", timeout=60)


def _peer(*words: str) -> subprocess.Popen[str]:
    command = [*on_core(OTHER_CORE), sys.executable, str(HERE / "socket_peers.py"), *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# --- what is found


def turns() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with running() as one:
        for way, model in MODELS.items():
            options = ("--model", model, "--sockets", "64")
            clients(*options, "--turns", "20")
            rounds = [_turn_costs(one, options) for _ in range(5)]
            found[way] = {
                key: statistics.median(round_[key] for round_ in rounds) for key in rounds[0]
            }
    return found


def _turn_costs(one: Gateway, options: tuple[str, ...]) -> dict[str, float]:
    before = one.cpu()
    told = clients(*options, "--turns", "60")
    cpu = one.cpu() - before
    return {
        "turns_per_second": told["turns"] / told["seconds"],
        "events_per_second": told["events"] / told["seconds"],
        "cpu_us_per_turn": cpu / told["turns"] * 1e6,
        "cpu_us_per_event": cpu / told["events"] * 1e6,
        "p50_ms": told["p50_ms"],
        "p99_ms": told["p99_ms"],
    }


def idle() -> dict[str, Any]:
    """Memory of 1,000 open sockets, each: of those that never asked, and of those that did."""
    found: dict[str, Any] = {"limit_kib": IDLE_LIMIT}
    for name, model, count in (
        ("never asked", "m1", 0),
        ("after a direct turn, upstream socket included", "m1", 1),
        ("after a bridged turn", "m2", 1),
    ):
        options = ("--model", model, "--turns", str(count))
        with running() as one:
            clients(*options, "--sockets", "100")
            time.sleep(2)
            before = one.memory()
            with held(*options, "--sockets", "1000"):
                time.sleep(2)
                began, at = one.cpu(), time.perf_counter()
                time.sleep(5)
                cpu = (one.cpu() - began) / (time.perf_counter() - at)
                found[name] = {
                    "kib_each": (one.memory() - before) * 1024 / 1000,
                    "share_of_a_core": cpu,
                }
    return found


def large() -> dict[str, Any]:
    """One turn of 60 MiB in each direction: the most memory that the process ever had."""
    found = {}
    for way, model in MODELS.items():
        with running() as one:
            clients("--model", model, "--sockets", "4", "--turns", "5")
            before = _peak(one)
            pad = ("--pad", str(60 * MIB)) if way == "direct" else ()
            told = clients(
                *("--model", model, "--sockets", "1", "--turns", "1", "--up", str(60 * MIB)), *pad
            )
            found[way] = {"peak_mib_more": _peak(one) - before, "seconds": told["seconds"]}
    return found


def _peak(one: Gateway) -> float:
    """MiB, of the process with the most."""
    found = []
    for pid in one.pids():
        text = Path(f"/proc/{pid}/status").read_text()
        found += [int(kib) / 1024 for kib in re.findall(r"VmHWM:\s+(\d+)", text)]
    return max(found)


def churn() -> dict[str, Any]:
    """What is left of 20,000 sockets."""
    states = []
    with running() as one:
        told = [clients("--sockets", "4000", what="churn")]
        states.append(_state(one))
        for seed in range(5):
            options = ("--sockets", "4000", "--seed", str(seed + 2))
            told.append(clients(*options, what="churn"))
            states.append(_state(one))
    return {
        "connects": [4000 * (at + 1) for at in range(len(states))],
        "seconds": sum(one["seconds"] for one in told),
        "ways": {way: sum(one[way] for one in told) for way in told[0] if way != "seconds"},
        "states": states,
    }


def _state(one: Gateway) -> dict[str, Any]:
    time.sleep(8)  # the last are closed, and rows and logs are written
    TELLS.unlink(missing_ok=True)
    os.kill(one.process.pid, signal.SIGUSR1)
    while not TELLS.exists():
        time.sleep(0.05)
    pid = one.process.pid
    return {
        "memory_mb": round(one.memory(), 1),
        "fds": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        **json.loads(TELLS.read_text()),
        **_gauges(),
    }


def _gauges() -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS_PORT}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r"^(gateway_open_\w+|gateway_in_flight\w*) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


# --- the gateway's process


def serve(config: str) -> None:
    """`llmgw serve`, which tells on a signal how many tasks and objects it has."""
    import asyncio
    import gc
    from collections import Counter

    from llmgw.cli import main as llmgw

    def tell(*_: object) -> None:
        gc.collect()
        ours = [one for one in gc.get_objects() if type(one).__module__.startswith("llmgw")]
        told = {
            "tasks": len(asyncio.all_tasks()),
            "objects": len(gc.get_objects()),
            "most": dict(Counter(type(one).__name__ for one in ours).most_common(4)),
        }
        draft = TELLS.with_suffix(".draft")
        draft.write_text(json.dumps(told))
        draft.rename(TELLS)

    signal.signal(signal.SIGUSR1, tell)
    sys.exit(llmgw(["serve", "-c", config]))


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "websockets.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    wanted = sys.argv[1:] or ["turns", "idle", "large", "churn"]
    for name in wanted:
        kept[name] = {"turns": turns, "idle": idle, "large": large, "churn": churn}[name]()
        print(json.dumps({name: kept[name]}, indent=1), flush=True)
        path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
