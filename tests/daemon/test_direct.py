"""What is asked of sockets in C does what the modules do that it goes past."""

import errno
import importlib.util
import os
import select
import signal
import socket
import threading
import time
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import llmgw.daemon
from llmgw.core.tail import Tail
from llmgw.core.types import Dialect
from llmgw.daemon.direct import EVENT_BITS
from llmgw.upstream.framing import Chunked

BUILT = Path(llmgw.daemon.__file__).parent / f"_direct{EXTENSION_SUFFIXES[0]}"
MUCH = 10**6
PATIENCE = 30
HI = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="it was not built")


@pytest.fixture(scope="module")
def direct():
    """Also where the modules run as they are written, which do without it."""
    spec = importlib.util.spec_from_file_location("llmgw.daemon._direct", BUILT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ends():
    """A node, the gateway's two sockets, and a client."""
    node, fd = socket.socketpair()
    to, client = socket.socketpair()
    for one in (node, fd, to, client):
        one.setblocking(False)
    yield node, fd, to, client
    for one in (node, fd, to, client):
        one.close()


def chunk(data, size=None):
    return b"%x\r\n%b\r\n" % (len(data) if size is None else size, data)


def received(one):
    got = b""
    try:
        while data := one.recv(MUCH):
            got += data
    except BlockingIOError:
        pass
    return got


def carried(direct, came, *, kept=b"", most=MUCH):
    """What `carry` gives, what has come out, and what is kept."""
    node, fd = socket.socketpair()
    to, client = socket.socketpair()
    with node, fd, to, client:
        client.setblocking(False)
        held = bytearray(kept)
        if came:
            node.sendall(came)
        else:
            node.shutdown(socket.SHUT_WR)
        gave = direct.carry(fd.fileno(), to.fileno(), held, most)
        return gave, received(client), bytes(held)


def looked_at(came, kept=b""):
    """The same by a framing and a tail; None for what does not pass."""
    framing, tail = Chunked(), Tail(Dialect.CHAT)
    tail.push(kept)
    body = framing.feed(came)
    if not body or framing.done or framing.flaw or not framing.is_between_chunks:
        return None
    return None if tail.take(body) else bytes(tail.room[0])


@pytest.mark.parametrize(
    "came",
    [
        pytest.param(chunk(HI), id="one"),
        pytest.param(chunk(HI) * 9, id="nine"),
        pytest.param(chunk(b"x" * 15), id="one digit"),
        pytest.param(chunk(b"x" * 16), id="two digits"),
        pytest.param(chunk(b"x" * 4096), id="four digits"),
        pytest.param(chunk(b"x" * 65_000), id="almost a read"),
        pytest.param(chunk(b": ping\n\n"), id="a comment"),
    ],
)
def test_whole_chunks_go_on_as_they_came(direct, came):
    gave, out, kept = carried(direct, came, kept=b"before")

    assert out == came
    assert kept == looked_at(came, b"before")
    assert gave == len(kept) - len(b"before")


@pytest.mark.parametrize(
    "came",
    [
        pytest.param(b"", id="the end"),
        pytest.param(b"0\r\n\r\n", id="the last chunk"),
        pytest.param(chunk(HI) + b"0\r\n\r\n", id="the last chunk behind another"),
        pytest.param(chunk(b"data: [DONE]\n\n"), id="the terminal event"),
        pytest.param(chunk(b"data: [DONE]\r\n\r\n"), id="the terminal event with CR LF"),
        pytest.param(chunk(HI) + chunk(b"data: [DONE]\n\n"), id="a terminal event behind one"),
        pytest.param(chunk(b"data: [DONE]\n\n") + chunk(HI), id="a terminal event before one"),
        pytest.param(chunk(b"NE]\n\n"), id="the end of a terminal event"),
        pytest.param(chunk(b"\n\n"), id="a blank line"),
        pytest.param(chunk(HI)[:-1], id="without its LF"),
        pytest.param(chunk(HI)[:9], id="cut in its data"),
        pytest.param(chunk(HI) + b"3", id="cut behind one"),
        pytest.param(chunk(HI) + chunk(HI)[:20], id="cut in the second"),
        pytest.param(chunk(HI, len(HI) - 1), id="too short a size"),
        pytest.param(chunk(HI, len(HI) + 1), id="too long a size"),
        pytest.param(b"0" + chunk(HI), id="a leading zero"),
        pytest.param(b"3C\r\n" + b"x" * 60 + b"\r\n", id="upper case"),
        pytest.param(b"6;a=b\r\n" + b"x" * 6 + b"\r\n", id="an extension"),
        pytest.param(b"6\n" + b"x" * 6 + b"\r\n", id="a bare LF"),
        pytest.param(b"fffff\r\n" + b"x" * 100, id="a size beyond the read"),
        pytest.param(b"ffffffffffffffff\r\n" + b"x" * 100, id="a size beyond all"),
        pytest.param(b"\r\n", id="no size"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="no chunk"),
    ],
)
def test_anything_else_comes_back_and_goes_nowhere(direct, came):
    assert carried(direct, came, kept=b"before") == (came, b"", b"before")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(min_size=1, max_size=40).map(chunk),
            st.sampled_from([chunk(HI), chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n", b"\r\n", b"5"]),
            st.binary(max_size=3),
        ),
        min_size=1,
        max_size=4,
    ).map(b"".join)
)
def test_what_passes_would_have_passed_the_framing_and_the_tail(came):
    spec = importlib.util.spec_from_file_location("llmgw.daemon._direct", BUILT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    gave, out, kept = carried(module, came)

    if isinstance(gave, bytes):
        assert (gave, out, kept) == (came, b"", b"")
    else:
        assert kept == looked_at(came)
        assert (gave, out) == (len(kept), came)


def test_what_is_kept_stays_below_its_limit(direct):
    assert carried(direct, chunk(HI), kept=b"k" * 10, most=10 + len(HI))[0] == len(HI)
    gave, out, kept = carried(direct, chunk(HI), kept=b"k" * 10, most=9 + len(HI))

    assert (gave, out, kept) == (chunk(HI), b"", b"k" * 10)


def test_kept_bytes_that_somebody_looks_at_are_left_alone(direct, ends):
    node, fd, to, client = ends
    node.sendall(chunk(HI))
    kept = bytearray(b"before")
    with memoryview(kept):
        gave = direct.carry(fd.fileno(), to.fileno(), kept, MUCH)

    assert gave == chunk(HI)
    assert (kept, received(client)) == (b"before", b"")


def test_nothing_has_come(direct, ends):
    _, fd, to, _ = ends

    assert direct.carry(fd.fileno(), to.fileno(), bytearray(), MUCH) is None


def test_a_client_that_takes_a_part_is_owed_the_rest(direct, ends):
    node, fd, _, _ = ends
    came = chunk(b"x" * 60_000)
    node.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    node.sendall(came)
    kept = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(server.getsockname())
        client.settimeout(PATIENCE)
        to, _ = server.accept()
        with to:
            to.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

            count, rest = direct.carry(fd.fileno(), to.fileno(), kept, MUCH)

            out = b""
            while len(out) < len(came) - len(rest):
                out += client.recv(MUCH)

    assert count == len(kept) == 60_000
    assert 0 < len(rest) < len(came)
    assert out + rest == came


def test_a_client_that_is_gone_is_for_the_protocol_to_find(direct, ends):
    node, fd, to, client = ends
    client.close()
    node.sendall(chunk(HI))
    kept = bytearray()

    assert direct.carry(fd.fileno(), to.fileno(), kept, MUCH) == chunk(HI)
    assert kept == b""


def test_a_node_that_is_gone_is_told(direct, ends):
    _, _, to, _ = ends

    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        direct.carry(10**6, to.fileno(), bytearray(), MUCH)


@pytest.mark.parametrize(
    "arguments", [(), (0, 1, b"no bytearray", 9), (0, 1, bytearray(), 9, 9)], ids=str
)
def test_other_arguments_are_refused(direct, arguments):
    with pytest.raises(TypeError):
        direct.carry(*arguments)


# --- wait


@pytest.fixture
def epoll():
    with select.epoll() as one:
        yield one


def test_who_is_ready_is_told_with_what_it_is_ready_for(direct, epoll, ends):
    node, fd, to, _ = ends
    epoll.register(fd.fileno(), select.EPOLLIN)
    epoll.register(to.fileno(), select.EPOLLIN | select.EPOLLOUT)
    node.sendall(b"x")

    ready = direct.wait(epoll.fileno(), 1.0, 9)

    assert sorted((one >> EVENT_BITS, one & ((1 << EVENT_BITS) - 1)) for one in ready) == sorted(
        [(fd.fileno(), select.EPOLLIN), (to.fileno(), select.EPOLLOUT)]
    )


def test_no_more_are_told_than_are_asked_for(direct, epoll, ends):
    for one in ends:
        epoll.register(one.fileno(), select.EPOLLOUT)

    assert len(direct.wait(epoll.fileno(), 0.0, 3)) == 3


@pytest.mark.parametrize("seconds", [0.0, 0.001], ids=["at once", "a moment"])
def test_nobody_is_ready(direct, epoll, seconds):
    assert direct.wait(epoll.fileno(), seconds, 9) == []


def test_a_wait_is_never_shorter_than_was_asked_for(direct, epoll):
    before = time.monotonic()

    direct.wait(epoll.fileno(), 0.0102, 9)

    assert time.monotonic() - before >= 0.0102


def test_others_may_run_meanwhile_and_end_the_wait(direct, epoll, ends):
    node, fd, _, _ = ends
    epoll.register(fd.fileno(), select.EPOLLIN)
    sender = threading.Thread(target=node.sendall, args=(b"x",))
    sender.start()

    assert direct.wait(epoll.fileno(), -1.0, 9) == [fd.fileno() << EVENT_BITS | select.EPOLLIN]
    sender.join()


def test_a_signal_is_handled_and_ends_the_wait(direct, epoll):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append("alarm"))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert direct.wait(epoll.fileno(), -1.0, 9) == []
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == ["alarm"]


@pytest.mark.parametrize(
    ("seconds", "most"), [(1e9, 9), (float("nan"), 9), (0.0, 0), (0.0, 257)], ids=str
)
def test_what_can_t_be_waited_for_is_refused(direct, epoll, seconds, most):
    with pytest.raises(ValueError, match="too much"):
        direct.wait(epoll.fileno(), seconds, most)
