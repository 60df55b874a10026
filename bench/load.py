"""A closed-loop load generator: each connection sends its next request when it has its answer.

    python bench/load.py --port 18000 --connections 64 --requests 20000
    python bench/load.py --port 18000 --connections 150 --requests 450 --stream 100 --delay 20

Prints one JSON object: counts, latencies in milliseconds, and its own CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import time
from dataclasses import dataclass, field

import uvloop

STAMP = re.compile(rb'"fp_(\d{16})"')
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
LAST_CHUNK = b"0\r\n\r\n"


@dataclass
class Plan:
    port: int
    connections: int
    requests: int
    stream: int  # events; 0: a JSON answer
    delay: int  # milliseconds between events
    body_bytes: int
    key: str
    ramp: float  # seconds over which the connections begin
    path: str = "/v1/chat/completions"

    def head_and_body(self) -> tuple[bytes, bytes]:
        wanted = {"model": "m1", "stream": bool(self.stream), "max_tokens": self.stream or 1}
        wanted |= {"seed": self.delay, "messages": [{"role": "user", "content": ""}]}
        room = self.body_bytes - len(json.dumps(wanted))
        wanted["messages"] = [{"role": "user", "content": "y" * max(room, 1)}]
        body = json.dumps(wanted).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
            f"content-type: application/json\r\nauthorization: Bearer {self.key}\r\n"
            f"content-length: {len(body)}\r\nx-bench-id: "
        )
        return head.encode(), b"\r\n\r\n" + body


@dataclass
class Tally:
    ok: int = 0
    errors: int = 0
    bad_status: int = 0
    events: int = 0
    total: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # to the first event
    lag: list[float] = field(default_factory=list)  # from upstream's write to here
    first_bad: str = ""


class Client(asyncio.Protocol):
    def __init__(self, run: Run) -> None:
        self.run = run
        self.plan = run.plan
        self.tally = run.tally
        self.held = b""
        self.busy = False
        self.left = -1  # bytes that the answer still lacks; -1: its head is not whole
        self.chunked = False
        self.status = 0
        self.began = 0.0
        self.heard = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        number = self.run.take()
        if number is None:
            self.transport.close()
            return
        self.busy, self.heard, self.left, self.held = True, False, -1, b""
        self.began = time.perf_counter()
        self.transport.write(b"%b%d%b" % (self.run.head, number, self.run.body))

    def data_received(self, data: bytes) -> None:
        if self.left < 0:
            data = self.begin(self.held + data)
            if self.left < 0:
                return
        if self.chunked:
            self.stream(data)
            self.held = self.held[-len(LAST_CHUNK) :] + data[-len(LAST_CHUNK) :]
            if self.held.endswith(LAST_CHUNK):
                self.done()
        else:
            self.left -= len(data)
            if self.left <= 0:
                self.done()

    def begin(self, data: bytes) -> bytes:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self.held = data
            return b""
        head = data[:end]
        self.status = int(head[9:12])
        if self.status != 200 and not self.tally.first_bad:
            self.tally.first_bad = data[:300].decode("latin-1")
        self.chunked = b"chunked" in head.lower()
        found = LENGTH.search(head)
        self.left = int(found[1]) if found else 0
        self.held = b""
        return data[end + 4 :]

    def stream(self, data: bytes) -> None:
        count = data.count(b"data: ")
        if not count:
            return
        tally = self.tally
        tally.events += count
        if not self.heard:
            self.heard = True
            tally.first.append(time.perf_counter() - self.began)
        if found := STAMP.search(data):
            tally.lag.append(time.monotonic() - int(found[1]) / 1e6)

    def done(self) -> None:
        tally = self.tally
        tally.total.append(time.perf_counter() - self.began)
        if self.status == 200:
            tally.ok += 1
        else:
            tally.bad_status += 1
        self.busy = False
        self.ask()

    def connection_lost(self, _: Exception | None) -> None:
        if self.busy:
            self.tally.errors += 1
        self.run.ended(again=self.busy)


class Run:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tally = Tally()
        self.head, self.body = plan.head_and_body()
        self.asked = 0
        self.open = 0
        self.over = asyncio.Event()

    def take(self) -> int | None:
        if self.asked >= self.plan.requests:
            return None
        self.asked += 1
        return self.asked

    def ended(self, *, again: bool) -> None:
        self.open -= 1
        if again and self.asked < self.plan.requests and self.tally.errors < 1000:
            asyncio.get_running_loop().create_task(self.connect())
        elif not self.open:
            self.over.set()

    async def connect(self) -> None:
        self.open += 1
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: Client(self), "127.0.0.1", self.plan.port)

    async def all(self, within: float) -> float:
        began = time.perf_counter()
        pause = self.plan.ramp / self.plan.connections
        for number in range(min(self.plan.connections, self.plan.requests)):
            await self.connect()
            late = began + pause * (number + 1) - time.perf_counter()
            if late > 0:
                await asyncio.sleep(late)
        try:
            async with asyncio.timeout(within):
                await self.over.wait()
        except TimeoutError:
            self.tally.errors += self.open
        return time.perf_counter() - began


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


def report(tally: Tally, wall: float) -> dict[str, object]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    shown: dict[str, object] = {
        "wall": wall,
        "ok": tally.ok,
        "errors": tally.errors,
        "bad_status": tally.bad_status,
        "first_bad": tally.first_bad,
        "events": tally.events,
        "load_cpu": used.ru_utime + used.ru_stime,
    }
    for name, values in (("total", tally.total), ("first", tally.first), ("lag", tally.lag)):
        shown[f"{name}_p50"] = percentile(values, 0.5)
        shown[f"{name}_p99"] = percentile(values, 0.99)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--stream", type=int, default=0)
    parser.add_argument("--delay", type=int, default=0)
    parser.add_argument("--body-bytes", type=int, default=600)
    parser.add_argument("--key", default="sk-bench-loopback-only")
    parser.add_argument("--ramp", type=float, default=0.0)
    parser.add_argument("--within", type=float, default=60.0)
    args = vars(parser.parse_args())
    within = args.pop("within")

    async def run() -> None:
        one = Run(Plan(**args))
        wall = await one.all(within)
        print(json.dumps(report(one.tally, wall)))

    uvloop.run(run())


if __name__ == "__main__":
    main()
