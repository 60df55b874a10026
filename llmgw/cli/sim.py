"""`llmgw sim`: one simulated inference node in the foreground, for trying things out."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from llmgw.config_file.faults import Unfit
from llmgw.config_file.quantities import parse_duration
from llmgw.sim.faults import Fault, FaultKind, InvalidFault, parse_fault
from llmgw.sim.node import SimNode

MAX_COUNT = 10_000_000
EPILOG = """Faults can be switched while it runs, at the second address that it prints:
curl -d '{"fault": "status", "status": 503}' ADDRESS switches one on, curl -X DELETE ADDRESS all
off."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=int, default=0, help="default: any free one, which is printed"
    )
    parser.add_argument("--name", default="sim", help="its name, which its answers tell")
    parser.add_argument(
        "--model", action="append", metavar="NAME", help="a model it serves (default: sim)"
    )
    parser.add_argument(
        "--ttft", type=_duration, default=0.05, metavar="TIME", help="time to first token (50ms)"
    )
    parser.add_argument(
        "--tps", type=_rate, default=50.0, metavar="N", help="tokens a second; 0: no pause (50)"
    )
    parser.add_argument("--tokens", type=_count, default=40, metavar="N", help="per answer (40)")
    parser.add_argument(
        "--websocket", action="store_true", help="take websockets, as providers do"
    )
    parser.add_argument(
        "--max-model-len", type=_count, default=8192, metavar="N", help="as it lists it (8192)"
    )
    parser.add_argument(
        "--fault",
        action="append",
        type=_fault,
        default=[],
        metavar="KIND[,name=value...]",
        help=f"what it does wrong, e.g. status,status=503,times=2; kinds: {', '.join(FaultKind)}",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; 1 if the address can't be had."""
    node = SimNode(
        arguments.model or ["sim"],
        name=arguments.name,
        host=arguments.host,
        port=arguments.port,
        ttft=arguments.ttft,
        tps=arguments.tps,
        tokens=arguments.tokens,
        max_model_len=arguments.max_model_len,
        websocket=arguments.websocket,
        faults=arguments.fault,
    )
    try:
        asyncio.run(_serve(node))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
        print(f"llmgw sim: {arguments.host}:{arguments.port}: {reason}", file=sys.stderr)
        return 1
    return 0


async def _serve(node: SimNode) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with node:
        print(node.url, flush=True)  # alone on stdout, for scripts
        print(_introduction(node), file=sys.stderr, flush=True)
        await stop.wait()


def _introduction(node: SimNode) -> str:
    return (
        f"node {node.name} serves {', '.join(node.state.settings.models)}; "
        f"faults: GET, POST, DELETE {node.control_url}/_sim/faults"
    )


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except Unfit as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError("must be a number, 0 or more")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_COUNT):
        raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
    return int(text)


def _fault(text: str) -> Fault:
    try:
        return parse_fault(text)
    except InvalidFault as error:
        raise argparse.ArgumentTypeError(str(error)) from None
