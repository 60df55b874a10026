"""Addresses of hosts: found once for all who ask, kept a while, sought anew after a failure."""

import asyncio
import errno
import socket
import threading

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream import names as module
from llmgw.upstream.names import Names

HOST = BaseUrl("http", "engine.test", 8000)
ADDRESS = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("10.0.0.1", 8000))


class Lookups:
    """Stands in for the system's resolver; counts who goes through to it."""

    def __init__(self) -> None:
        self.hosts: list[tuple[str, int]] = []
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, host: tuple[str, int]) -> list[tuple[object, ...]]:
        self.hosts.append(host)
        self.gate.wait(60)
        if self.error is not None:
            raise self.error
        return [ADDRESS]


@pytest.fixture
def lookups(monkeypatch):
    made = Lookups()
    monkeypatch.setattr(module, "_look_up", made)
    return made


@pytest.fixture
async def names():
    made = Names()
    yield made
    made.close()


async def fault(names: Names) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        await names.resolve(HOST)
    return raised.value


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 80), ("::1", 81)])
async def test_an_address_is_its_own_answer(names, lookups, host, port):
    (found,) = await names.resolve(BaseUrl("http", host, port))

    assert found[4][:2] == (host, port)
    assert lookups.hosts == []


async def test_a_name_is_looked_up_once_for_all_who_ask(names, lookups):
    lookups.gate.clear()
    asking = [asyncio.create_task(names.resolve(HOST)) for _ in range(5)]
    await asyncio.sleep(0)
    lookups.gate.set()

    assert await asyncio.gather(*asking) == [[ADDRESS]] * 5
    assert await names.resolve(HOST) == [ADDRESS]
    assert lookups.hosts == [("engine.test", 8000)]


async def test_it_is_looked_up_again_when_that_is_old(names, lookups, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 0.0)

    for _ in range(2):
        await names.resolve(HOST)

    assert len(lookups.hosts) == 2


async def test_a_failure_is_told_in_words_of_ours_and_not_kept(names, lookups):
    lookups.error = socket.gaierror(socket.EAI_NONAME, "CANARY")
    found = await fault(names)
    assert (found.kind, found.detail) == (FaultKind.CONNECT, "name not resolved")
    assert found.__cause__ is None

    lookups.error = None
    assert await names.resolve(HOST) == [ADDRESS]


async def test_a_name_that_cannot_be_one_is_a_failure(names):
    with pytest.raises(UpstreamError) as raised:
        await names.resolve(BaseUrl("http", "a" * 70 + ".invalid", 80))

    assert raised.value.kind is FaultKind.CONNECT


async def test_one_who_leaves_does_not_end_the_search_for_the_others(names, lookups):
    lookups.gate.clear()
    leaving = asyncio.create_task(names.resolve(HOST))
    staying = asyncio.create_task(names.resolve(HOST))
    await asyncio.sleep(0)

    leaving.cancel()
    await asyncio.sleep(0)
    lookups.gate.set()

    assert await staying == [ADDRESS]
    assert len(lookups.hosts) == 1


async def test_without_descriptors_nothing_is_said_of_the_host(names, lookups, monkeypatch):
    def refuse(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "CANARY")

    lookups.error = socket.gaierror(socket.EAI_AGAIN, "CANARY")
    monkeypatch.setattr(module.socket, "socket", refuse)

    assert (await fault(names)).kind is FaultKind.EXHAUSTED


async def test_what_is_kept_is_bounded(names, lookups, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    for port in range(1, 8):
        await names.resolve(BaseUrl("http", "engine.test", port))

    await names.resolve(BaseUrl("http", "engine.test", 1))
    await names.resolve(BaseUrl("http", "engine.test", 7))

    assert [port for _, port in lookups.hosts] == [1, 2, 3, 4, 5, 6, 7, 1]
