"""Both ends of the websocket workloads, as bytes: a node that streams responses, and clients.

    python bench/socket_peers.py node --port 19061            answers upgrades with frames
    python bench/socket_peers.py node --port 19062 --plain    refuses them with 403, answers POSTs
    python bench/socket_peers.py clients --port 18060 --model m1 --sockets 64 --turns 100

The clients print one JSON object. With `--hold` they say `ready` once each has had its turns, and
keep their sockets open until their input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import sys
import time
from base64 import b64encode
from hashlib import sha1

import uvloop

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
KEY = re.compile(rb"sec-websocket-key: *([^\r]+)", re.IGNORECASE)
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
EVENTS = 50
PAD = re.compile(rb'"pad":(\d+)')  # how long the answer's text is to be
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
    b"sec-websocket-accept: %b\r\n\r\n"
)
REFUSAL = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
LEAVES = ("close", "reset", "inside a turn")


def events(number: int, pad: int = 0) -> list[bytes]:
    response = {"id": f"resp_{number:032x}", "object": "response", "model": "m", "output": []}
    usage = {"input_tokens": 12, "output_tokens": EVENTS, "total_tokens": 12 + EVENTS}
    deltas = [
        {"type": "response.output_text.delta", "sequence_number": at, "item_id": "msg_1"}
        | {"output_index": 0, "content_index": 0, "delta": "word " + "x" * pad}
        for at in range(1, 2 if pad else EVENTS - 1)
    ]
    whole = [
        {"type": "response.created", "sequence_number": 0, "response": response},
        *deltas,
        {"type": "response.completed", "response": {**response, "usage": usage}},
    ]
    return [json.dumps(one, separators=(",", ":")).encode() for one in whole]


def frame(data: bytes, *, opcode: int = 1, masked: bool = False) -> bytes:
    """Masked with zeros, which change nothing."""
    bit, mask = (0x80, b"\0\0\0\0") if masked else (0, b"")
    size = len(data)
    if size < 126:
        head = bytes((0x80 | opcode, bit | size))
    elif size < 65536:
        head = bytes((0x80 | opcode, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, bit | 127)) + size.to_bytes(8, "big")
    return head + mask + data


class Frames:
    """Whole frames out of bytes in any cut."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        self._data += data
        found, at = [], 0
        view = self._data
        while len(view) - at >= 2:
            size, start = view[at + 1] & 0x7F, at + 2
            longer = {126: 2, 127: 8}.get(size, 0)
            if longer:
                size = int.from_bytes(view[start : start + longer], "big")
                start += longer
            mask = b""
            if view[at + 1] & 0x80:
                mask, start = bytes(view[start : start + 4]), start + 4
            if len(view) < start + size:
                break
            found.append((view[at] & 0xF, _plain(view[start : start + size], mask)))
            at = start + size
        del view[:at]
        return found


def _plain(data: bytearray, mask: bytes) -> bytes:
    if not any(mask):
        return bytes(data)
    size = len(data)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")


class Node(asyncio.Protocol):
    """Every event is a write of its own."""

    served = 0

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._read = b""
        self._frames: Frames | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.WriteTransport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._frames is not None:
            self._take_frames(data)
            return
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end]
            length = LENGTH.search(head)
            size = int(length[1]) if length else 0
            if len(self._read) < end + 4 + size:
                return
            self._read = self._read[end + 4 + size :]
            self._answer(head)

    def _take_frames(self, data: bytes) -> None:
        assert self._frames is not None
        for opcode, payload in self._frames.feed(data):
            if opcode == 8:
                self.transport.close()
            elif opcode == 9:
                self.transport.write(frame(payload, opcode=10))
            elif opcode == 1:
                Node.served += 1
                pad = PAD.search(payload, 0, 200)
                for event in events(Node.served, int(pad[1]) if pad else 0):
                    self.transport.write(frame(event))

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"POST /v1/responses"):
            Node.served += 1
            self.transport.write(STREAM)
            for event in events(Node.served):
                self._chunk(b"data: %b\n\n" % event)
            self._chunk(b"")
        elif (key := KEY.search(head)) is None:
            model = "m2" if self._plain else "m1"
            body = json.dumps({"object": "list", "data": [{"id": model, "object": "model"}]})
            lines = (
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            )
            self.transport.write(f"{lines}\r\n\r\n{body}".encode())
        elif self._plain:
            self.transport.write(REFUSAL)
            self.transport.close()
        else:
            accept = b64encode(sha1(key[1] + GUID, usedforsecurity=False).digest())
            self.transport.write(SWITCH % accept)
            self._frames = Frames()

    def _chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


class Client:
    """One websocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Frames()
        self._waiting: list[tuple[int, bytes]] = []

    @classmethod
    async def connect(cls, port: int, key: str) -> Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**20))
        client._writer.write(
            b"GET /v1/responses HTTP/1.1\r\nhost: gateway\r\nconnection: Upgrade\r\n"
            b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
            b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"authorization: Bearer %b\r\n\r\n" % key.encode()
        )
        head = await client._reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode("latin-1"))
        return client

    def ask(self, frame_of_turn: bytes) -> None:
        self._writer.write(frame_of_turn)

    async def answered(self) -> int:
        """Read up to the end of a turn; how many events it had."""
        count = 0
        while True:
            opcode, payload = await self._next()
            if opcode == 9:
                self._writer.write(frame(payload, opcode=10, masked=True))
            elif opcode == 8:
                raise RuntimeError(f"closed: {payload!r}")
            elif opcode == 1:
                count += 1
                if payload.startswith(b'{"type":"error"'):
                    raise RuntimeError(payload.decode())
                if payload.startswith(b'{"type":"response.completed"'):
                    return count

    async def _next(self) -> tuple[int, bytes]:
        while not self._waiting:
            data = await self._reader.read(2**18)
            if not data:
                raise RuntimeError("the gateway left")
            self._waiting = self._frames.feed(data)
        return self._waiting.pop(0)

    async def leave(self, how: str) -> None:
        if how == "close":
            self._writer.write(frame(b"\x03\xe8", opcode=8, masked=True))
            while await self._reader.read(2**18):
                pass
        self._writer.transport.abort()


def turn(model: str, *, up: int = 400, pad: int = 0, store: bool = True) -> bytes:
    asked: dict[str, object] = {"type": "response.create", "model": model}
    asked |= {"pad": pad} if pad else {}
    asked |= {} if store else {"store": False}
    asked |= {"input": "x" * up}
    return frame(json.dumps(asked, separators=(",", ":")).encode(), masked=True)


async def serve(port: int, *, plain: bool) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Node(plain=plain), "127.0.0.1", port, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


async def run_turns(args: argparse.Namespace) -> dict[str, object]:
    """Each socket has its turns, one after another."""
    asked = turn(args.model, up=args.up, pad=args.pad)
    latencies: list[float] = []
    counts = {"turns": 0, "events": 0}
    gate = asyncio.Semaphore(64)  # of handshakes

    async def one() -> Client:
        async with gate:
            client = await Client.connect(args.port, args.key)
        for _ in range(args.turns):
            began = time.perf_counter()
            client.ask(asked)
            events = await client.answered()
            counts["events"] += events
            latencies.append(time.perf_counter() - began)
            counts["turns"] += 1
        return client

    began = time.perf_counter()
    clients = await asyncio.gather(*(one() for _ in range(args.sockets)))
    seconds = time.perf_counter() - began
    if args.hold:
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for client in clients:
        await client.leave("reset")
    latencies.sort()
    return counts | {
        "seconds": seconds,
        "p50_ms": 1000 * latencies[len(latencies) // 2] if latencies else None,
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100] if latencies else None,
    }


async def churn(args: argparse.Namespace) -> dict[str, object]:
    """Come, mostly have a turn, and leave in one of the ways there are. Nothing is to be stored:
    the pins of 65,536 responses are kept on purpose."""
    random.seed(args.seed)
    counts = dict.fromkeys((*LEAVES, "without a turn"), 0)
    turns = [turn("m1", store=False), turn("m2", store=False)]
    left = args.sockets

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            client = await Client.connect(args.port, args.key)
            asked = random.random() < 0.8
            how = random.choice(LEAVES) if asked else random.choice(LEAVES[:2])
            if asked:
                client.ask(random.choice(turns))
                if how != "inside a turn":
                    await client.answered()
            counts[how if asked else "without a turn"] += 1
            await client.leave(how)

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(50)))
    return counts | {"seconds": time.perf_counter() - began}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("node", "clients", "churn"))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--model", default="m1")
    parser.add_argument("--key", default="sk-bench-loopback-only")
    parser.add_argument("--sockets", type=int, default=64)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--up", type=int, default=400)
    parser.add_argument("--pad", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hold", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if args.what == "node":
        uvloop.run(serve(args.port, plain=args.plain))
    else:
        work = run_turns if args.what == "clients" else churn
        print(json.dumps(uvloop.run(work(args))))


if __name__ == "__main__":
    main()
