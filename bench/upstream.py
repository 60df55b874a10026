"""A fast fake of an OpenAI-compatible server: many ports, one process, answers from memory.

    python bench/upstream.py --ports 19001-19002 [--models 1] [--refuse 0.1] [--vllm]

A request says itself what it wants: `stream`, `max_tokens` (events) and `seed` (milliseconds
between them). Every event is a write of its own and carries the time it was written at.
`--refuse` answers that share of requests with 429 the first time that it sees their `x-bench-id`.
With `--vllm` lists and metrics are as long as that engine's; it stamps its lists, so that no two
are the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import time
import uuid
from functools import partial

import uvloop

NUMBERS = re.compile(rb'"(max_tokens|seed)": ?(\d+)')
STREAMS = re.compile(rb'"stream": ?true')
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
BENCH_ID = re.compile(rb"\r\nx-bench-id: *([^\r]+)", re.IGNORECASE)
SMALL = 4096  # bytes of a body that is searched whole: some gateways sort its members
DATE = b"date: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\n%bcontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n" % DATE
)
EVENT = (
    b'data: {"id":"chatcmpl-5d0b1c2e3f4a4b5c8d9e0f1a2b3c4d5e","object":"chat.completion.chunk",'
    b'"created":1767225600,"model":"m1","system_fingerprint":"fp_%016d","choices":[{"index":0,'
    b'"delta":{%b},"logprobs":null,"finish_reason":%b}]%b}\n\n'
)
USAGE = b',"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}'
ANSWER = {
    "id": "chatcmpl-5d0b1c2e3f4a4b5c8d9e0f1a2b3c4d5e",
    "object": "chat.completion",
    "created": 1767225600,
    "model": "m1",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "word " * 60},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46},
}


PERMISSION = {
    **{"object": "model_permission", "created": 0, "allow_create_engine": False},
    **{"allow_sampling": True, "allow_logprobs": True, "allow_search_indices": False},
    **{"allow_view": True, "allow_fine_tuning": False, "organization": "*", "group": None},
    "is_blocking": False,
}
GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")


def vllm_listing(names: list[str]) -> bytes:
    now = int(time.time())
    data = [
        {
            **{"id": name, "object": "model", "created": now, "owned_by": "vllm", "root": name},
            **{"parent": None, "max_model_len": 8192},
            "permission": [{"id": f"modelperm-{uuid.uuid4().hex}", **PERMISSION, "created": now}],
        }
        for name in names
    ]
    return json_answer({"object": "list", "data": data})


def vllm_metrics() -> bytes:
    """About as many lines as version 0.11 has: its gauges first, then mostly buckets."""
    labels = 'engine="0",model_name="m1"'
    lines = [f"process_number_{number} {number}" for number in range(40)]
    lines += [f"vllm:{name}{{{labels}}} 0.0" for name in GAUGES]
    for number in range(18):
        name = f"vllm:histogram_number_{number}_of_requests_seconds"
        lines += [f"# HELP {name} Histogram of one thing or another.", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{edge}.0",{labels}}} {edge}.0' for edge in range(24)]
        lines += [f"{name}_count{{{labels}}} 24.0", f"{name}_sum{{{labels}}} 276.0"]
    body = "\n".join(lines).encode() + b"\n"
    head = b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\ncontent-type: text/plain\r\n\r\n"
    return head % (DATE, len(body)) + body


def json_answer(value: object, status: bytes = b"200 OK") -> bytes:
    body = json.dumps(value).encode()
    head = b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\ncontent-type: application/json\r\n\r\n"
    return head % (status, DATE, len(body)) + body


def chunk(delta: bytes, reason: bytes = b"null", usage: bytes = b"") -> bytes:
    event = EVENT % (time.monotonic_ns() // 1000, delta, reason, usage)
    return b"%x\r\n%b\r\n" % (len(event), event)


class Site:
    """What all connections share."""

    def __init__(self, models: int, refuse: float, vllm: bool) -> None:
        names = ["m1", *(f"model-{number}" for number in range(2, models + 1))]
        data = [{"id": name, "object": "model", "max_model_len": 8192} for name in names]
        listing = json_answer({"object": "list", "data": data})
        self.listing = partial(vllm_listing, names) if vllm else lambda: listing
        self.answer = json_answer(ANSWER)
        self.health = json_answer({})
        self.metrics = vllm_metrics() if vllm else self.health
        self.refusal = json_answer(
            {"error": {"message": "full", "type": "rate_limit_error", "code": "full"}},
            b"429 Too Many Requests",
        )
        self.refuse = refuse
        self.asked = 0
        self.refused: set[bytes] = set()

    def refuses(self, head: bytes) -> bool:
        found = BENCH_ID.search(head) if self.refuse else None
        if found is None or found[1] in self.refused:
            return False
        self.asked += 1
        if self.asked * self.refuse < len(self.refused) + 1:
            return False
        self.refused.add(found[1])
        return True


class Connection(asyncio.Protocol):
    def __init__(self, site: Site, loop: asyncio.AbstractEventLoop) -> None:
        self.site = site
        self.loop = loop
        self.held = b""
        self.timer: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self.held:
            data = self.held + data
        end = data.find(b"\r\n\r\n")
        found = LENGTH.search(data, 0, end) if end >= 0 else None
        whole = end + 4 + (int(found[1]) if found else 0)
        if end < 0 or len(data) < whole:
            self.held = data
            return
        self.held = data[whole:]
        self.answer(data[:end], data[end + 4 : whole])

    def answer(self, head: bytes, body: bytes) -> None:
        site, write = self.site, self.transport.write
        if head.startswith(b"GET /v1/models"):
            write(site.listing())
        elif head.startswith(b"GET /metrics"):
            write(site.metrics)
        elif head.startswith(b"GET"):
            write(site.health)
        elif site.refuses(head):
            write(site.refusal)
        elif STREAMS.search(ends := body if len(body) < SMALL else body[:400] + body[-400:]):
            numbers = dict(NUMBERS.findall(ends))
            events, delay = int(numbers.get(b"max_tokens", 1)), int(numbers.get(b"seed", 0))
            write(STREAM_HEAD)
            write(chunk(b'"role":"assistant","content":""'))
            self.next(events, delay / 1000, self.loop.time())
        else:
            write(site.answer)

    def next(self, left: int, delay: float, due: float) -> None:
        due += delay
        self.timer = (
            self.loop.call_at(due, self.event, left, delay, due)
            if delay
            else self.loop.call_soon(self.event, left, delay, due)
        )

    def event(self, left: int, delay: float, due: float) -> None:
        if left:
            self.transport.write(chunk(b'"content":" word"'))
            self.next(left - 1, delay, due)
            return
        self.timer = None
        self.transport.write(
            chunk(b"", b'"stop"', USAGE) + b"e\r\ndata: [DONE]\n\n\r\n" + b"0\r\n\r\n"
        )


async def serve(first: int, last: int, site: Site) -> None:
    loop = asyncio.get_running_loop()
    for port in range(first, last + 1):
        await loop.create_server(lambda: Connection(site, loop), "127.0.0.1", port, backlog=2048)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", default="19001-19002")
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--refuse", type=float, default=0.0)
    parser.add_argument("--vllm", action="store_true")
    args = parser.parse_args()
    first, _, last = args.ports.partition("-")
    uvloop.run(serve(int(first), int(last or first), Site(args.models, args.refuse, args.vllm)))


if __name__ == "__main__":
    main()
