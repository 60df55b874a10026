"""What size costs: 1,000 nodes with 300 models each, 10,000 keys, a start, an overload.

    python bench/growth.py [checks] [nodes] [keys] [pages] [reload] [start] [overload]

Prints one JSON object for each finding and writes them all to `bench/results/growth.json`.
"""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peers import HERE, KEY, WORK, Peer, find_peers, llmgw_config
from processes import GATEWAY_CORE, OTHER_CORE, Gateway, gateway, load, on_core, upstream
from run import RESULTS

MANY = range(20001, 21001)
W1 = ["--connections", "64", "--requests", "10000"]
STREAMS = ["--stream", "100", "--delay", "20", "--ramp", "0.5", "--within", "90"]


@contextmanager
def running(**config: Any) -> Iterator[Gateway]:
    (peer,) = find_peers(["llmgw"])
    path = llmgw_config(WORK / "growth.toml", **config)
    state = Path(peer.environment["STATE_DIRECTORY"])
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    command = [peer.command[0], "serve", "-c", str(path)]
    with gateway(Peer("llmgw", command, peer.port, peer.ready, peer.environment)) as one:
        load(one.peer.port, "--connections", "8", "--requests", "600")
        yield one


def request_cost(one: Gateway, rounds: int = 3) -> float:
    found = []
    for _ in range(rounds):
        before = one.cpu()
        told = load(one.peer.port, *W1)
        found.append((one.cpu() - before) / max(told["ok"], 1) * 1e6)
    return statistics.median(found)


def idle_cost(one: Gateway, seconds: float = 12.0) -> float:
    before = one.cpu()
    time.sleep(seconds)
    return (one.cpu() - before) / seconds


def checks() -> dict[str, Any]:
    """What 1,000 nodes cost that nobody sends a request to: all of it, and single questions."""
    found: dict[str, Any] = {}
    kinds = {"300_models": ["--models", "300"], "like_vllm": ["--models", "5", "--vllm"]}
    for kind, options in kinds.items():
        with upstream(*options, ports=_ports(MANY)):
            told = subprocess.run(
                [*on_core(GATEWAY_CORE), sys.executable, str(HERE / "checks.py")],
                stdout=subprocess.PIPE,
                check=True,
            )
            with running(ports=MANY) as one:
                time.sleep(8)  # the first round comes at once
                found[kind] = {
                    **json.loads(told.stdout),
                    "share_of_a_core": statistics.median(idle_cost(one, 6.0) for _ in range(5)),
                    "memory_mb": one.memory(),
                }
    return found


def nodes() -> dict[str, Any]:
    with upstream("--models", "2"), running() as one:
        small = request_cost(one)
    with upstream("--models", "300", ports=_ports(MANY)), running(ports=MANY) as one:
        time.sleep(5)
        idle = idle_cost(one)
        began = one.cpu()
        started = time.perf_counter()
        large = request_cost(one)
        other = idle * (time.perf_counter() - started)
        large -= other / 30000 * 1e6  # what the checks took meanwhile is counted by itself
        memory = one.memory()
        assert one.cpu() > began
    return {
        "request_us_2_nodes": small,
        "request_us_1000_nodes": large,
        "ratio": large / small,
        "checks_share_of_a_core": idle,
        "memory_mb": memory,
    }


def keys() -> dict[str, Any]:
    with upstream(), running(keys=1) as one:
        few = request_cost(one)
    with upstream(), running(keys=10_000) as one:
        many = request_cost(one)
    return {"request_us_1_key": few, "request_us_10000_keys": many, "ratio": many / few}


def pages() -> dict[str, Any]:
    """How long the pages for operators take with 1,000 nodes, and what they do to the loop."""
    with upstream("--models", "300", ports=_ports(MANY)), running(ports=MANY) as one:
        time.sleep(8)
        for number in range(2, 301):
            _ask_for(f"model-{number}")
        found: dict[str, Any] = {"nothing": _lag(lambda: time.sleep(5))}
        for page, url in (
            ("health", "http://127.0.0.1:18000/health"),
            ("metrics", "http://127.0.0.1:18100/metrics"),
        ):
            times: list[float] = []
            lag = _lag(lambda: times.extend(_timed(url, key=KEY) for _ in range(20)))  # noqa: B023
            found[page] = {"ms": statistics.median(times) * 1000, **lag}
        assert one.process.poll() is None
    return found


def reload() -> dict[str, Any]:
    """What a reload of 1,000 nodes does to the loop: of the same ones, and of 1,000 others."""
    found: dict[str, Any] = {}
    both = range(MANY[0], MANY[-1] + len(MANY) + 1)
    with upstream("--models", "300", ports=_ports(both)), running(ports=MANY) as one:
        time.sleep(8)
        found["same_nodes"] = [_lag(lambda: _reload(one)) for _ in range(5)]
        llmgw_config(WORK / "growth.toml", ports=both[len(MANY) :])
        found["other_nodes"] = _lag(lambda: _reload(one))
    return found


def _reload(one: Gateway) -> None:
    """And a request behind it, for some things are made when they are first asked for."""
    log = WORK / "llmgw.log"
    before = log.read_bytes().count(b'"config loaded"')
    one.process.send_signal(signal.SIGHUP)
    while log.read_bytes().count(b'"config loaded"') == before:
        time.sleep(0.02)
    _ask_for("m1")
    time.sleep(3)


def _ask_for(model: str) -> None:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
    request = urllib.request.Request(
        "http://127.0.0.1:18000/v1/chat/completions",
        body.encode(),
        {"authorization": f"Bearer {KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def _lag(work: Callable[[], object]) -> dict[str, float]:
    """The loop's lateness while `work` goes on, by round trips of another process."""
    program = [*on_core(OTHER_CORE), sys.executable, str(HERE / "lag.py")]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        time.sleep(0.5)
        work()
        output, _ = process.communicate(timeout=30)
    found: dict[str, float] = json.loads(output)
    return {f"loop_{name}": value for name, value in found.items()}


def start() -> dict[str, Any]:
    """From the start of the process to its first good answer, cold state and warm."""
    found: dict[str, list[float]] = {"cold": [], "warm": []}
    (peer,) = find_peers(["llmgw"])
    state = Path(peer.environment["STATE_DIRECTORY"])
    with upstream():
        for _ in range(5):
            for kind in ("cold", "warm"):
                if kind == "cold":
                    shutil.rmtree(state, ignore_errors=True)
                    state.mkdir()
                began = time.perf_counter()
                with gateway(peer):
                    found[kind].append(time.perf_counter() - began)
    return {f"ready_s_{kind}": statistics.median(times) for kind, times in found.items()}


def overload() -> dict[str, Any]:
    """Streams offered: as many as one core serves, and twice as many."""
    found: dict[str, Any] = {}
    with upstream(), running() as one:
        for connections in (750, 1500, 3000):
            told = load(
                one.peer.port,
                *("--connections", str(connections), "--requests", str(connections)),
                *STREAMS,
            )
            found[f"{connections}_streams"] = {
                "events_a_second": told["events"] / told["wall"],
                "first_event_p99_ms": told["first_p99"],
                "lag_p99_ms": told["lag_p99"],
                "failed": told["errors"] + told["bad_status"],
                "memory_mb": one.memory(),
            }
    return found


def _ports(ports: range) -> str:
    return f"{ports[0]}-{ports[-1]}"


def _timed(url: str, key: str = "") -> float:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"})
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()
    return time.perf_counter() - began


PARTS = {
    "checks": checks,
    "nodes": nodes,
    "keys": keys,
    "pages": pages,
    "reload": reload,
    "start": start,
    "overload": overload,
}


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "growth.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for name in sys.argv[1:] or PARTS:
        known[name] = PARTS[name]()
        print(json.dumps({name: known[name]}), flush=True)
        path.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
