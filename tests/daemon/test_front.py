import socket

import pytest

from llmgw.core.config import GatewayConfig, Listen
from llmgw.daemon.front import Front, Listeners
from llmgw.daemon.inherit import Inheritance
from llmgw.daemon.sockets import ListenFailed, adopted

ANYWHERE = Listen("127.0.0.1", 0)


class FakeServer:
    def __init__(self):
        self.serving = []
        self.stopped = []
        self.stuck = False

    async def start(self, sockets):
        self.serving += sockets

    async def stop_listening(self, sockets=None):
        for one in list(self.serving if sockets is None else sockets):
            self.serving.remove(one)
            self.stopped.append(one)
            one.close()

    async def drain(self, within):
        self.drained = within

    async def close(self):
        await self.stop_listening()
        if self.stuck:
            raise TimeoutError


@pytest.fixture
def http():
    return FakeServer()


@pytest.fixture
def metrics():
    return FakeServer()


@pytest.fixture
async def front(http, metrics):
    front = Front(http, metrics)
    yield front
    await front.close(handed_over=False)


def config(listen=ANYWHERE, metrics=ANYWHERE):
    return GatewayConfig(listen=(listen,), metrics_listen=(metrics,))


def address_of(sock):
    return Listen(*sock.getsockname())


async def test_a_reload_that_leaves_the_addresses_alone_touches_no_socket(front, http, metrics):
    taken = []
    for _ in range(2):  # ports that are free, for a configuration that names them
        with socket.create_server(("127.0.0.1", 0)) as sock:
            taken.append(address_of(sock))
    await front.start(Listeners().open(config(*taken)))
    before = list(http.serving)

    await front.change(front.listeners.open(config(*taken)))

    assert http.serving == before
    assert http.stopped == metrics.stopped == []


async def test_a_changed_address_serves_before_the_old_one_ends(front, http, metrics):
    await front.start(Listeners().open(config()))
    (old,) = http.serving

    await front.change(front.listeners.open(config(Listen("::1", 0))))

    assert [one.family for one in http.serving] == [socket.AF_INET6]
    assert http.stopped == [old]
    assert [one.listen.host for one in front.listeners.http] == ["::1"]


async def test_a_taken_metrics_address_leaves_no_door_half_open():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ListenFailed) as failed,
    ):
        Listeners().open(config(metrics=address_of(taken)))

    assert str(failed.value).startswith("gateway.metrics_listen:")


async def test_what_a_predecessor_left_and_is_listed_no_more_is_closed(front, http):
    with socket.create_server(("127.0.0.1", 0)) as left:
        inherited = Listeners.inherited(Inheritance(http=(adopted(left, given=False),)))

        await front.start(inherited.open(config(Listen("::1", 0))))

        assert left.fileno() == -1
        assert [one.family for one in http.serving] == [socket.AF_INET6]


async def test_metrics_are_shown_to_the_end_of_a_drain(front, http, metrics):
    await front.start(Listeners().open(config()))

    await front.stop_listening(handed_over=False)

    assert http.serving == []
    assert len(metrics.serving) == 1


async def test_after_a_handover_both_doors_are_the_successors(front, http, metrics, tmp_path):
    path = tmp_path / "http.sock"
    await front.start(Listeners().open(config(Listen(path=str(path)))))

    await front.stop_listening(handed_over=True)

    assert http.serving == metrics.serving == []
    assert path.exists()


async def test_the_file_of_a_unix_socket_goes_with_its_door(front, tmp_path):
    path = tmp_path / "http.sock"
    await front.start(Listeners().open(config(Listen(path=str(path)))))

    await front.stop_listening(handed_over=False)

    assert not path.exists()


async def test_connections_that_do_not_end_do_not_keep_the_process(front, http, caplog):
    http.stuck = True

    await front.close(handed_over=False)

    assert [one.message for one in caplog.records] == ["connections did not end"]
    http.stuck = False
