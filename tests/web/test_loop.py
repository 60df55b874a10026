"""What aiohttp's own loop did between two requests, and ours has to do as well."""

import asyncio

from aiohttp import web

from llmgw.web.loop import RequestLoop
from tests.fakes.patience import WITHIN

REQUEST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}"
ANSWER = b"HTTP/1.1 200 OK"


class Server(web.Server):
    def __call__(self):
        return RequestLoop(self, loop=asyncio.get_running_loop(), **self._kwargs)


class Door:
    """A real server on loopback whose connections run our loop."""

    def __init__(self, handler, **options):
        self.made = Server(handler, handler_cancellation=True, **options)

    async def __aenter__(self):
        self.listener = await asyncio.get_running_loop().create_server(self.made, "127.0.0.1", 0)
        self.port = self.listener.sockets[0].getsockname()[1]
        self.writers = []
        return self

    async def __aexit__(self, *_):
        for writer in self.writers:
            writer.close()
        self.listener.close()
        await self.made.shutdown(1)

    async def client(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer


async def echo(request):
    return web.Response(body=await request.read())


async def head_of(reader):
    async with asyncio.timeout(WITHIN):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split()[0])
        await reader.readexactly(length)
    return head


async def gone(reader):
    async with asyncio.timeout(WITHIN):
        return await reader.read()


async def test_requests_follow_each_other_on_one_connection_in_one_task():
    tasks = []

    async def handler(request):
        tasks.append(asyncio.current_task())
        return await echo(request)

    async with Door(handler) as door:
        reader, writer = await door.client()
        for _ in range(3):
            writer.write(REQUEST)
            assert (await head_of(reader)).startswith(ANSWER)

    assert len(set(tasks)) == 1
    assert door.made.requests_count == 3


async def test_an_idle_connection_is_closed_after_the_keep_alive_time():
    async with Door(echo, keepalive_timeout=0.5) as door:
        reader, writer = await door.client()
        writer.write(REQUEST)
        await head_of(reader)

        assert await gone(reader) == b""


async def test_a_request_before_that_puts_the_end_off():
    async with Door(echo, keepalive_timeout=1.0) as door:
        reader, writer = await door.client()
        for _ in range(4):
            writer.write(REQUEST)
            await head_of(reader)
            await asyncio.sleep(0.4)

        writer.write(REQUEST)
        assert (await head_of(reader)).startswith(ANSWER)


async def test_a_client_that_says_close_is_closed():
    async with Door(echo) as door:
        reader, writer = await door.client()
        writer.write(REQUEST.replace(b"host", b"connection: close\r\nhost"))

        await head_of(reader)
        assert await gone(reader) == b""


async def test_a_body_that_nobody_wanted_is_read_to_its_end_before_the_next_request():
    async def handler(request):
        return web.Response(body=b"early")

    async with Door(handler, lingering_time=2.0) as door:
        reader, writer = await door.client()
        writer.write(REQUEST.replace(b"{}", b""))
        await head_of(reader)
        writer.write(b"{}" + REQUEST)

        assert (await head_of(reader)).startswith(ANSWER)


async def test_a_body_that_never_comes_ends_the_connection():
    async def handler(request):
        return web.Response(body=b"early")

    async with Door(handler, lingering_time=0.05) as door:
        reader, writer = await door.client()
        writer.write(REQUEST.replace(b"{}", b""))
        await head_of(reader)

        assert await gone(reader) == b""


async def test_a_client_that_leaves_cancels_its_handler():
    entered, left = asyncio.Event(), asyncio.Event()

    async def handler(request):
        entered.set()
        try:
            await asyncio.sleep(30)
        finally:
            left.set()

    async with Door(handler) as door:
        _, writer = await door.client()
        writer.write(REQUEST)
        await entered.wait()
        writer.transport.abort()

        async with asyncio.timeout(WITHIN):
            await left.wait()


async def test_bytes_that_are_no_request_are_refused_and_end_the_connection():
    async with Door(echo) as door:
        reader, writer = await door.client()
        writer.write(b"\x00\x01\r\n\r\n")

        assert (await gone(reader)).startswith(b"HTTP/1.0 400")


async def test_a_handler_that_is_cancelled_ends_its_connection():
    async def broken(request):
        request.transport.write(b"half")
        raise asyncio.CancelledError

    async with Door(broken) as door:
        reader, writer = await door.client()
        writer.write(REQUEST)

        assert await gone(reader) == b"half"
