"""`llmgw demo`: an answer that arrives although the node that began it failed.

Two simulated nodes and a real gateway process. What is told is read from what the nodes saw and
what the client received, by the id of the request; nothing is assumed to have happened.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from llmgw import __version__
from llmgw.cli.child import ChildFailed, GatewayProcess
from llmgw.cli.narrator import Narrator
from llmgw.sim.node import SimNode
from llmgw.sim.state import Seen

MODEL: Final = "demo"
FAULT: Final = "cut_before"  # head and first event are sent, then the connection is cut
SENTENCE: Final = 29  # tokens: the nodes' text ends with a full stop there
TRIES: Final = 4  # two nodes take turns: the failing one is asked by the second at the latest
ANSWER_WITHIN: Final = aiohttp.ClientTimeout(total=30)
CHAT: Final = {
    "model": MODEL,
    "stream": True,
    "messages": [{"role": "user", "content": "Say something."}],
}


class DemoFailed(Exception):
    """What should have been seen was not."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client received."""

    status: int
    request_id: str
    text: str
    is_whole: bool  # ended as the dialect ends a stream, without an error event
    seconds: float


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="exit after the failover was shown")


def run(arguments: argparse.Namespace) -> int:
    """0 if the failover was seen, 1 if not, 130 if interrupted before."""
    narrator = Narrator(sys.stdout, os.environ)
    try:
        asyncio.run(_run(narrator, stay=not arguments.once))
    except (DemoFailed, ChildFailed) as error:
        narrator.failed(str(error))
        return 1
    except asyncio.CancelledError:
        return 130
    return 0


async def _run(narrator: Narrator, *, stay: bool) -> None:
    _cancel_on_signals()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llmgw-demo-")))
        nodes = [
            await stack.enter_async_context(
                SimNode([MODEL], name=name, ttft=0.15, tps=40, tokens=SENTENCE)
            )
            for name in ("a", "b")
        ]
        gateway = GatewayProcess([node.url for node in nodes], folder)
        await stack.enter_async_context(gateway)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=ANSWER_WITHIN))
        failed = await Story(narrator, nodes, gateway, session).tell()
        if stay:
            await _stay(narrator, gateway, failed)


def _cancel_on_signals() -> None:
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


async def _stay(narrator: Narrator, gateway: GatewayProcess, failed: SimNode) -> None:
    narrator.heading("Your turn (Ctrl-C ends the demo)")
    body = json.dumps(CHAT)
    url = f"{gateway.url}/v1/chat/completions"
    narrator.commands(
        (
            (f"curl -N {url} -H 'content-type: application/json' -d '{body}'", "ask"),
            (f"curl {gateway.url}/health", "what the gateway sees of its nodes"),
            (f"curl {gateway.metrics_url}", "its metrics"),
            (f"curl -X DELETE {failed.url}/_sim/faults", f"heal node {failed.name}"),
        )
    )
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        narrator.line("")


class Story:
    """What is done and told, in order."""

    def __init__(
        self,
        narrator: Narrator,
        nodes: Sequence[SimNode],
        gateway: GatewayProcess,
        session: aiohttp.ClientSession,
    ) -> None:
        self._narrator = narrator
        self._nodes = nodes
        self._gateway = gateway
        self._session = session

    async def tell(self) -> SimNode:
        """Returns the node that was made to fail. Raises `DemoFailed`."""
        self._introduce()
        self._narrator.heading("1. One answer, streamed through the gateway")
        first = await self._ask()
        server = await self._served(first)
        self._narrator.passed(f"node {server.name} answered in {first.seconds:.1f} s")
        failing = next(node for node in self._nodes if node is not server)
        await self._fail(failing)
        return failing

    def _introduce(self) -> None:
        self._narrator.title(f"llmgw {__version__}: two simulated nodes behind one gateway")
        for node in self._nodes:
            self._narrator.fact(f"node {node.name}", node.url)
        self._narrator.fact("gateway", self._gateway.url)
        self._narrator.fact("its log", str(self._gateway.log))

    async def _fail(self, failing: SimNode) -> None:
        self._narrator.heading(f"2. Node {failing.name} now dies before its first token")
        await failing.inject(FAULT)
        for _ in range(TRIES):
            answer = await self._ask()
            server = await self._served(answer)
            if was_lost(_seen_by(failing, answer)):
                self._narrator.passed(f"node {failing.name} took the request and died")
                self._narrator.passed(
                    f"node {server.name} answered it: one request, {self._attempts(answer)} "
                    f"attempts, HTTP {answer.status}, no trace of the failure in the answer"
                )
                return
            self._narrator.note(f"node {server.name} was asked first; once more")
        raise DemoFailed(f"node {failing.name} was never asked, so no failover could be seen")

    async def _ask(self) -> Answer:
        began = time.monotonic()
        url = f"{self._gateway.url}/v1/chat/completions"
        try:
            async with self._session.post(url, json=CHAT) as response:
                text, is_whole = await self._read(response)
                request_id = response.headers.get("x-request-id", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise DemoFailed(f"the gateway gave no answer ({type(error).__name__})") from None
        return Answer(response.status, request_id, text, is_whole, time.monotonic() - began)

    async def _read(self, response: aiohttp.ClientResponse) -> tuple[str, bool]:
        """The text, printed as it comes, and whether the stream ended as it should."""
        text, has_end, has_error = "", False, False
        async for line in response.content:
            data = line.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                has_end = True
            elif data != line.strip():
                chunk = json.loads(data)
                has_error = has_error or "error" in chunk
                self._narrator.word(word := _content(chunk))
                text += word
        self._narrator.end_words()
        return text, has_end and not has_error

    async def _served(self, answer: Answer) -> SimNode:
        """The node whose words the client has, whole. Raises `DemoFailed`."""
        if answer.status != 200 or not answer.is_whole:
            raise DemoFailed(f"the answer was HTTP {answer.status} and not whole")
        for node in self._nodes:
            seen = _seen_by(node, answer)
            if (
                seen is not None
                and await _is_served(seen)
                and answer.text.startswith(_hello(node))
            ):
                return node
        raise DemoFailed("no node served the answer that the client received")

    def _attempts(self, answer: Answer) -> int:
        seen = [one.request_id for node in self._nodes for one in node.seen]
        return seen.count(answer.request_id)


def was_lost(seen: Seen | None) -> bool:
    return seen is not None and seen.outcome == "cut" and seen.tokens == 0


def _seen_by(node: SimNode, answer: Answer) -> Seen | None:
    return next((one for one in node.seen if one.request_id == answer.request_id), None)


def _hello(node: SimNode) -> str:
    return f"Hello from {node.name}."


async def _is_served(seen: Seen) -> bool:
    """A node knows that it is done a moment after the client has the last byte."""
    for _ in range(100):
        if seen.outcome != "running":
            break
        await asyncio.sleep(0.01)
    return seen.outcome == "served"


def _content(chunk: dict[str, Any]) -> str:
    choices = chunk.get("choices") or [{}]
    return str((choices[0].get("delta") or {}).get("content") or "")
