"""The event loop does what asyncio's does; sockets are only read by a shorter way."""

import asyncio
import socket
import time
import weakref
from errno import EMFILE
from unittest import mock

import pytest

from llmgw.daemon.loop import FairLoop, new_loop
from tests.fakes.patience import until

PATIENCE = 20

KINDS = ["asyncio", "uvloop"]


class Plain(asyncio.Protocol):
    def __init__(self):
        self.got = []
        self.over = asyncio.get_running_loop().create_future()
        self.changed = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.got.append(data)
        self.changed.set()

    def eof_received(self):
        self.got.append("eof")
        return False

    def connection_lost(self, error):
        self.over.set_result(error)

    async def until(self, size):
        async with asyncio.timeout(PATIENCE):
            while len(b"".join(one for one in self.got if one != "eof")) < size:
                self.changed.clear()
                await self.changed.wait()


class Filled(asyncio.BufferedProtocol):
    """Takes `size` bytes, then gives the connection back."""

    def __init__(self, back, size):
        self.back = back
        self.buffer = bytearray(size)
        self.at = 0

    def get_buffer(self, sizehint):
        return memoryview(self.buffer)[self.at :]

    def buffer_updated(self, nbytes):
        self.at += nbytes
        if self.at == len(self.buffer):
            self.back.transport.set_protocol(self.back)
            self.back.data_received(bytes(self.buffer))


def run(kind, scene, *, debug=False):
    with asyncio.Runner(loop_factory=lambda: new_loop(kind), debug=debug) as runner:
        return runner.run(scene())


async def pair(make):
    """A protocol on a connection, and the socket at the other end."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    _, protocol = await loop.create_connection(make, sock=ours)
    return protocol, theirs


def test_the_loop_is_chosen_by_name():
    chosen = new_loop("asyncio"), new_loop("uvloop")

    assert [isinstance(one, FairLoop) for one in chosen] == [True, False]
    for one in chosen:
        one.close()


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_the_end_of_a_connection_arrive(kind, debug):
    async def scene():
        protocol, peer = await pair(Plain)
        peer.send(b"one")
        await protocol.until(3)
        peer.close()
        return protocol.got, await asyncio.wait_for(protocol.over, PATIENCE)

    assert run(kind, scene, debug=debug) == ([b"one", "eof"], None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_protocol_with_a_buffer_takes_over_and_gives_back(kind):
    async def scene():
        protocol, peer = await pair(Plain)
        protocol.transport.set_protocol(Filled(protocol, 5))
        peer.send(b"12345")
        await protocol.until(5)
        peer.send(b"678")
        await protocol.until(8)
        got = list(protocol.got)
        peer.close()
        return got

    assert run(kind, scene) == [b"12345", b"678"]


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_a_socket_takes_is_sent_as_it_takes_it(kind):
    async def scene():
        protocol, peer = await pair(Plain)
        protocol.transport.write(bytes(4_000_000))
        waits = protocol.transport.get_write_buffer_size() > 0
        loop, left = asyncio.get_running_loop(), 4_000_000
        while left:
            left -= len(await asyncio.wait_for(loop.sock_recv(peer, 2**20), PATIENCE))
        peer.close()
        return waits, left

    assert run(kind, scene) == (True, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_paused_connection_is_not_read(kind):
    async def scene():
        protocol, peer = await pair(Plain)
        protocol.transport.pause_reading()
        peer.send(b"late")
        for _ in range(5):
            await asyncio.sleep(0)
        before = list(protocol.got)
        protocol.transport.resume_reading()
        await protocol.until(4)
        got = list(protocol.got)
        peer.close()
        return before, got

    assert run(kind, scene) == ([], [b"late"])


def test_a_protocol_that_fails_ends_its_own_connection_and_no_other():
    class Failing(Plain):
        def data_received(self, data):
            raise ValueError("bad")

    async def scene():
        told = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        failing, peer = await pair(Failing)
        well, other = await pair(Plain)
        peer.send(b"x")
        other.send(b"y")
        error = await asyncio.wait_for(failing.over, PATIENCE)
        await well.until(1)
        got = list(well.got)
        for one in (peer, other):
            one.close()
        return [type(one) for one in told], type(error), got

    assert run("asyncio", scene) == ([ValueError], ValueError, [b"y"])


def test_a_peer_that_resets_is_told_as_an_error():
    async def scene():
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        server.close()
        accepted.setblocking(False)
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(Plain, sock=accepted)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        return type(await asyncio.wait_for(protocol.over, PATIENCE))

    assert run("asyncio", scene) is ConnectionResetError


def test_each_ready_socket_is_read_once_before_others_have_their_turn():
    async def scene():
        order, is_enough = [], asyncio.Event()

        def note(what):
            order.append(what)
            if len(order) >= 8:
                is_enough.set()

        class Noted(Plain):
            def data_received(self, data):
                note(self.name)
                asyncio.get_running_loop().call_soon(note, "soon")

        protocols = []
        for name in "ab":
            protocol, peer = await pair(Noted)
            protocol.name = name
            protocols.append((protocol, peer))
        for _, peer in protocols:
            peer.send(bytes(100_000))  # more than one read takes
        await asyncio.wait_for(is_enough.wait(), PATIENCE)
        for _, peer in protocols:
            peer.close()
        return order[:8]

    assert run("asyncio", scene) == ["a", "b", "soon", "soon"] * 2


def test_who_reads_a_descriptor_without_a_transport_is_called_as_ever():
    async def scene():
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        called = loop.create_future()
        loop.add_reader(ours, called.set_result, "read")
        theirs.send(b"x")
        found = await asyncio.wait_for(called, PATIENCE)
        loop.remove_reader(ours)
        loop.add_writer(ours, lambda: called_again.done() or called_again.set_result("written"))
        called_again = loop.create_future()
        again = await asyncio.wait_for(called_again, PATIENCE)
        loop.remove_writer(ours)
        ours.close()
        theirs.close()
        return found, again

    assert run("asyncio", scene) == ("read", "written")


def test_a_timer_that_was_cancelled_is_not_kept_for_long():
    async def scene():
        loop = asyncio.get_running_loop()
        kept = [loop.call_later(3600, print) for _ in range(500)]
        for one in kept:
            one.cancel()
        called = asyncio.Event()
        loop.call_later(0.01, called.set)
        await asyncio.wait_for(called.wait(), PATIENCE)
        await asyncio.sleep(0.01)
        return sum(one._scheduled for one in kept)

    assert run("asyncio", scene) < 100


def test_the_loop_can_be_referred_to_weakly_and_stops_between_two_turns():
    loop = FairLoop()
    weakref.ref(loop)
    turns = []

    def turn():
        turns.append(loop.time())
        if len(turns) == 3:
            loop.stop()
        loop.call_soon(turn)

    loop.call_soon(turn)
    loop.run_forever()
    loop.stop()
    loop.run_forever()
    loop.close()

    assert len(turns) == 4


def test_what_is_unsent_goes_out_before_a_close_and_not_before_an_abort():
    async def scene(end):
        protocol, peer = await pair(Plain)
        protocol.transport.write(bytes(4_000_000))
        getattr(protocol.transport, end)()
        loop, got = asyncio.get_running_loop(), 0
        while data := await asyncio.wait_for(loop.sock_recv(peer, 2**20), PATIENCE):
            got += len(data)
        peer.close()
        await asyncio.wait_for(protocol.over, PATIENCE)
        protocol.transport.write(b"late")
        return got == 4_000_000, protocol.transport.is_closing()

    assert run("asyncio", lambda: scene("close")) == (True, True)
    assert run("asyncio", lambda: scene("abort")) == (False, True)


@pytest.mark.parametrize("kind", KINDS)
def test_who_writes_is_told_when_to_pause_and_when_to_go_on(kind):
    class Writer(Plain):
        def pause_writing(self):
            self.got.append("pause")

        def resume_writing(self):
            self.got.append("resume")
            self.changed.set()

    async def scene():
        protocol, peer = await pair(Writer)
        protocol.transport.set_write_buffer_limits(high=100_000)
        limits = protocol.transport.get_write_buffer_limits()
        protocol.transport.write(bytes(4_000_000))
        loop, left = asyncio.get_running_loop(), 4_000_000
        while left:
            left -= len(await asyncio.wait_for(loop.sock_recv(peer, 2**20), PATIENCE))
        await asyncio.wait_for(protocol.changed.wait(), PATIENCE)
        peer.close()
        return limits, protocol.got[:2]

    assert run(kind, scene) == ((25_000, 100_000), ["pause", "resume"])


@pytest.mark.parametrize("kind", KINDS)
def test_after_the_end_of_what_is_written_the_peer_may_still_send(kind):
    async def scene():
        protocol, peer = await pair(Plain)
        protocol.transport.write(b"all")
        protocol.transport.write_eof()
        loop = asyncio.get_running_loop()
        parts = [await asyncio.wait_for(loop.sock_recv(peer, 9), PATIENCE) for _ in range(2)]
        peer.send(b"still")
        await protocol.until(5)
        with pytest.raises(RuntimeError):
            protocol.transport.write(b"more")
        protocol.transport.abort()
        peer.close()
        return parts, protocol.got

    assert run(kind, scene) == ([b"all", b""], [b"still"])


def test_limits_that_contradict_each_other_are_refused():
    async def scene():
        protocol, peer = await pair(Plain)
        with pytest.raises(ValueError, match="high"):
            protocol.transport.set_write_buffer_limits(high=1, low=2)
        peer.close()

    run("asyncio", scene)


async def serve(make):
    """A listener on a port of its own, and how to connect to it."""
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    return server, lambda: socket.create_connection(address)


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_connect_at_once_are_served_and_know_their_peer(kind):
    async def scene():
        made = []

        class Noted(Plain):
            def connection_made(self, transport):
                super().connection_made(transport)
                made.append(self)

        server, connect = await serve(Noted)
        clients = [connect() for _ in range(90)]
        await until(lambda: len(made) == len(clients))
        told = {one.transport.get_extra_info("peername") for one in made}
        here = {one.transport.get_extra_info("sockname") for one in made}
        assert made[0].transport.get_extra_info("no such thing", 7) == 7
        names = {one.getsockname() for one in clients}, {clients[0].getpeername()}
        for one in clients:
            one.close()
        for one in made:
            await asyncio.wait_for(one.over, PATIENCE)
        server.close()
        return (told, here) == names

    assert run(kind, scene)


def test_who_can_t_be_served_is_closed_and_told_and_the_next_is_served():
    async def scene():
        told, made = [], []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: told.append(type(context["exception"]))
        )

        def make():
            if not told:
                raise ValueError
            made.append(Plain())
            return made[-1]

        server, connect = await serve(make)
        refused = connect()
        refused.setblocking(False)
        loop = asyncio.get_running_loop()
        got = await asyncio.wait_for(loop.sock_recv(refused, 9), PATIENCE)
        refused.close()
        served = connect()
        served.sendall(b"x")
        await until(lambda: made)
        await made[0].until(1)
        served.close()
        await asyncio.wait_for(made[0].over, PATIENCE)
        server.close()
        return told, got

    assert run("asyncio", scene) == ([ValueError], b"")


def test_without_descriptors_a_listener_waits_and_says_so(monkeypatch):
    async def scene():
        told = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["message"]))
        server, connect = await serve(Plain)
        monkeypatch.setattr(socket.socket, "accept", mock.Mock(side_effect=OSError(EMFILE, "no")))
        client = connect()
        await until(lambda: told)
        await asyncio.sleep(0.01)  # some turns of the loop, none of which tries again
        client.close()
        server.close()
        return told

    assert run("asyncio", scene) == ["socket.accept() out of system resource"]


def test_a_callback_that_takes_long_is_told_of_in_debug_mode(caplog):
    async def scene():
        loop = asyncio.get_running_loop()
        loop.slow_callback_duration = 0.001
        loop.set_debug(True)
        loop.call_soon(time.sleep, 0.01)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        loop.set_debug(False)

    run("asyncio", scene)

    assert [record.message[:9] for record in caplog.records if "sleep" in record.message] == [
        "Executing"
    ]
