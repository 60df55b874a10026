"""Measure the gateway and its peers: `python bench/run.py [--rounds 5] [WORKLOAD ...]`.

All gateways run at once, each on its own port, and take turns: what else the machine does hits
all of them. The main figure is the CPU time of a gateway's whole process tree, for each request
or event; times are for orientation. Prints a table and writes it to `bench/results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from chart import write_chart
from peers import HERE, Peer, find_peers
from processes import Gateway, gateway, load, start_load, upstream

RESULTS = HERE / "results"


@dataclass(frozen=True)
class Workload:
    says: str
    options: str
    events: bool = False  # counted by the event, else by the request
    refuse: float = 0.0
    memory_after: float = 0.0  # seconds into the run; 0: at its end


WORKLOADS = {
    "W0": Workload("one request after another", "--connections 1 --requests 2000"),
    "W1": Workload("64 connections, 600 B", "--connections 64 --requests 20000"),
    "W2": Workload(
        "32 streams of 200 events, no delay",
        "--connections 32 --requests 1000 --stream 200",
        events=True,
    ),
    "W3": Workload(
        "1,000 streams of 100 events at 20 ms",
        "--connections 1000 --requests 2000 --stream 100 --delay 20 --ramp 2",
        events=True,
        memory_after=3.2,
    ),
    "W3b": Workload(
        "150 streams of 100 events at 20 ms",
        "--connections 150 --requests 450 --stream 100 --delay 20 --ramp 2",
        events=True,
    ),
    "W4a": Workload("32 KB bodies", "--connections 16 --requests 3000 --body-bytes 32768"),
    "W4b": Workload("1 MB bodies", "--connections 4 --requests 200 --body-bytes 1048576"),
    "W6": Workload(
        "as W1, a tenth of the first attempts refused",
        "--connections 64 --requests 10000",
        refuse=0.1,
    ),
}
WARM_UP = ("--connections 8 --requests 600", "--connections 8 --requests 40 --stream 50")


def measure(one: Gateway, name: str) -> dict[str, Any]:
    workload = WORKLOADS[name]
    before = one.cpu()
    memory = None
    if workload.memory_after:
        process = start_load(one.peer.port, *workload.options.split())
        time.sleep(workload.memory_after)
        memory = one.memory()
        told = json.loads(process.communicate(timeout=180)[0])
    else:
        told = load(one.peer.port, *workload.options.split())
    cpu = one.cpu() - before
    count = told["events"] if workload.events else told["ok"]
    return told | {
        "peer": one.peer.name,
        "workload": name,
        "cpu_us": cpu / max(count, 1) * 1e6,
        "memory_mb": memory or one.memory(),
    }


def run(peers: list[Peer], names: list[str], rounds: int) -> list[dict[str, Any]]:
    found = []
    for refuse in sorted({WORKLOADS[name].refuse for name in names}):
        with ExitStack() as stack:
            stack.enter_context(upstream("--refuse", str(refuse)))
            running = [stack.enter_context(gateway(peer)) for peer in peers]
            for one in running:
                for options in WARM_UP:
                    load(one.peer.port, *options.split())
            for number in range(rounds):
                for name in (name for name in names if WORKLOADS[name].refuse == refuse):
                    for one in running:
                        row = measure(one, name) | {"round": number}
                        found.append(row)
                        bad = row["errors"] + row["bad_status"]
                        print(
                            f"{number} {name:4} {one.peer.name:12} {row['cpu_us']:8.1f} us"
                            + (f"  {bad} FAILED {row['first_bad'][:80]}" if bad else ""),
                            flush=True,
                        )
    return found


def medians(rows: list[dict[str, Any]], peers: list[str]) -> list[dict[str, Any]]:
    """One line for each workload and peer; ratios are medians of those of each round."""
    lines = []
    for name in dict.fromkeys(row["workload"] for row in rows):
        for peer in peers:
            own = [row for row in rows if row["workload"] == name and row["peer"] == peer]
            if not own:
                continue
            line = {"workload": name, "peer": peer}
            for key in ("cpu_us", "total_p50", "total_p99", "first_p99", "lag_p99", "memory_mb"):
                line[key] = round(statistics.median(row[key] for row in own), 2)
            line["failed"] = sum(row["errors"] + row["bad_status"] for row in own)
            for other in peers:
                if other != peer:
                    line[f"to_{other}"] = _ratio(rows, name, peer, other)
            lines.append(line)
    return lines


def _ratio(rows: list[dict[str, Any]], workload: str, peer: str, other: str) -> float:
    by_round: dict[int, dict[str, float]] = {}
    for row in rows:
        if row["workload"] == workload:
            by_round.setdefault(row["round"], {})[row["peer"]] = row["cpu_us"]
    pairs = [one[peer] / one[other] for one in by_round.values() if {peer, other} <= one.keys()]
    return round(statistics.median(pairs), 2)


def table(lines: list[dict[str, Any]], peers: list[str]) -> str:
    columns = ["CPU us", *(f"x {peer}" for peer in peers), "p50 ms", "p99 ms", "first event p99"]
    columns += ["event lag p99", "MB", "failed"]
    text = f"| workload | gateway | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 2)}\n"
    for line in lines:
        ratios = [str(line.get(f"to_{peer}", "")) for peer in peers]
        keys = ("total_p50", "total_p99", "first_p99", "lag_p99", "memory_mb", "failed")
        cells = [line["workload"], line["peer"], str(line["cpu_us"]), *ratios]
        text += f"| {' | '.join(cells + [str(line[key]) for key in keys])} |\n"
    return text


def machine() -> dict[str, Any]:
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    packages = ("llmgw", "aiohttp", "uvloop", "httptools", "orjson", "prometheus-client")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        **{name: version(name) for name in packages},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="nginx,vllm-router,smg,llmgw")
    parser.add_argument("--name", default=time.strftime("%Y-%m-%d"))
    args = parser.parse_args()
    about = machine()
    peers = find_peers(args.peers.split(","))
    rows = run(peers, args.workloads, args.rounds)
    names = [peer.name for peer in peers]
    lines = medians(rows, names)
    RESULTS.mkdir(exist_ok=True)
    result = {"machine": about, "medians": lines, "rounds": rows}
    (RESULTS / f"{args.name}.json").write_text(json.dumps(result, indent=1) + "\n")
    write_chart(RESULTS / "chart.svg", lines, {name: WORKLOADS[name].says for name in WORKLOADS})
    print(table(lines, names))


if __name__ == "__main__":
    main()
