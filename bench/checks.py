"""What asking a node costs: health check, listing and scrape, each alone and without its pauses.

    python bench/checks.py --ports 20001-20025

Asks 25 nodes at once, again and again, with the gateway's own lanes and client, and prints the
least CPU time (user and kernel) that one question took, in microseconds. The least of many is the
same on a busy machine and on a quiet one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import time
from functools import partial

import uvloop

from llmgw.core.config import BaseUrl, Config, Node
from llmgw.core.types import UpstreamName
from llmgw.runtime.discoverer import DiscoveryLoop
from llmgw.runtime.monitor import HealthMonitor
from llmgw.runtime.registry import Registry
from llmgw.runtime.rounds import Rounds
from llmgw.runtime.scraper import LoadScraper
from llmgw.runtime.tasks import Supervisor
from llmgw.upstream.client import WatchClient
from llmgw.upstream.known_lists import KnownLists
from llmgw.upstream.listing import list_models
from llmgw.upstream.probe import probe
from llmgw.upstream.scrape import scrape_gpus, scrape_load

TIMES = 200


async def measure(ports: range) -> dict[str, float]:
    nodes = [Node(UpstreamName(f"n{port}"), BaseUrl("http", "127.0.0.1", port)) for port in ports]
    registry, supervisor, client = (
        Registry(Config(nodes=tuple(nodes))),
        Supervisor(),
        WatchClient(),
    )
    lanes = {
        "check": HealthMonitor(registry, supervisor, partial(probe, client)),
        "listing": DiscoveryLoop(registry, supervisor, partial(list_models, client, KnownLists())),
        "scrape": LoadScraper(
            registry, supervisor, partial(scrape_load, client), partial(scrape_gpus, client)
        ),
    }
    found = {}
    for name, lane in lanes.items():
        lane.reload()
        rounds: Rounds[Node] = lane._rounds
        await _ask(rounds, nodes)
        gc.freeze()
        found[f"{name}_us"] = min([await _ask(rounds, nodes) for _ in range(TIMES)])
    await supervisor.stop()
    await client.close()
    return {name: round(us, 1) for name, us in found.items()}


async def _ask(rounds: Rounds[Node], nodes: list[Node]) -> float:
    began = time.thread_time()
    for node in nodes:
        rounds.ask_now(node)
    await asyncio.wait(tuple(rounds._in_flight.values()))
    return (time.thread_time() - began) / len(nodes) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", default="20001-20025")
    args = parser.parse_args()
    first, _, last = args.ports.partition("-")
    print(json.dumps(uvloop.run(measure(range(int(first), int(last) + 1)))))


if __name__ == "__main__":
    main()
