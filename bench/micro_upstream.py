"""What one JSON call over a kept connection costs on the way out: microseconds a request.

    python bench/micro_upstream.py

A bare server in a process of its own answers from memory; this process calls it over loopback.
"""

import asyncio
import os
import signal
import time

import uvloop

from llmgw.core.config import BaseUrl, Node
from llmgw.core.http import UpstreamRequest
from llmgw.core.types import UpstreamName
from llmgw.upstream.pool import Pools

CALLS = 20_000
ANSWER = b'{"choices": [{"message": {"content": "%s"}}]}' % (b"a" * 400)
RESPONSE = (
    b"HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-length: %d\r\ncontent-type: application/json\r\n\r\n%s" % (len(ANSWER), ANSWER)
)
REQUEST = UpstreamRequest(
    "POST",
    "/v1/chat/completions",
    tuple((f"x-header-{number}", "value") for number in range(10)),
    b'{"model": "m", "messages": [{"role": "user", "content": "%s"}]}' % (b"x" * 300),
)


class Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(RESPONSE)


async def serve(tell: int) -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    os.write(tell, str(server.sockets[0].getsockname()[1]).encode())
    await server.serve_forever()


async def measure(port: int) -> None:
    pools = Pools()
    node = Node(UpstreamName("node"), BaseUrl("http", "127.0.0.1", port))

    async def worker(calls: int) -> None:
        for _ in range(calls):
            exchange = await pools.open(node, REQUEST, connect_timeout=5, header_timeout=None)
            while await exchange.read():
                pass

    for at_once in (1, 32):
        await worker(500)
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker(CALLS // at_once) for _ in range(at_once)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            f"{at_once:3} at once: {wall / CALLS * 1e6:6.1f} us, {cpu / CALLS * 1e6:6.1f} us CPU"
        )
    pools.close()


def main() -> None:
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        uvloop.run(serve(tell))
        return
    try:
        uvloop.run(measure(int(os.read(told, 10))))
    finally:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
