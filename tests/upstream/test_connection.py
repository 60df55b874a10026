"""A connection between the calls that occupy it."""

import pytest

from llmgw.upstream.connection import Connection


class Transport:
    """Records what a connection does to its transport."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.unsent = 0

    def is_closing(self) -> bool:
        return "abort" in self.done

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.done.append("abort")

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")


class Keeper:
    def __init__(self) -> None:
        self.told: list[str] = []

    def take_back(self, connection: Connection) -> None:
        self.told.append("take back")

    def forget(self, connection: Connection) -> None:
        self.told.append("forget")


class Call:
    def __init__(self) -> None:
        self.got: list[object] = []

    def receive(self, data: bytes) -> None:
        self.got.append(data)

    def lose(self, error: Exception | None) -> None:
        self.got.append(error)


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def connection(keeper) -> Connection:
    connection = Connection(keeper)
    connection.connection_made(Transport())
    return connection


@pytest.fixture
def call(connection) -> Call:
    call = Call()
    connection.occupy(call)
    return call


def test_bytes_and_the_end_go_to_the_call(connection, call, keeper):
    reset = ConnectionResetError()
    connection.data_received(b"x")
    connection.connection_lost(reset)

    assert call.got == [b"x", reset]
    assert connection.gone
    assert keeper.told == ["forget"]


def test_an_orderly_end_is_told_once_though_the_transport_closes_later(connection, call, keeper):
    connection.eof_received()
    connection.connection_lost(None)

    assert call.got == [None]
    assert keeper.told == ["forget"]
    assert connection.transport.done == ["abort"]


@pytest.mark.parametrize(
    ("in_step", "unsent", "told"),
    [
        pytest.param(True, 0, "take back", id="in step"),
        pytest.param(False, 0, "forget", id="out of step"),
        pytest.param(True, 1, "forget", id="with a request half sent"),
    ],
)
def test_a_call_that_has_ended_leaves_its_connection(
    connection, call, keeper, in_step, unsent, told
):
    connection.transport.unsent = unsent
    connection.vacate(in_step=in_step)

    assert keeper.told == [told]
    assert connection.used is (told == "take back")
    assert connection.gone is (told == "forget")


def test_a_call_whose_connection_is_gone_has_nothing_to_leave(connection, call, keeper):
    connection.drop()
    connection.vacate(in_step=True)

    assert keeper.told == ["forget"]


def test_what_comes_while_no_call_is_served_ends_the_connection(connection, keeper):
    connection.data_received(b"surprise")

    assert connection.transport.done == ["abort"]
    assert keeper.told == ["forget"]


def test_a_call_that_was_dropped_hears_nothing_more(connection, call):
    connection.drop()
    connection.data_received(b"late")
    connection.connection_lost(None)

    assert call.got == []


def test_a_cut_is_told_to_the_call_and_gives_no_reason_to_repeat_it(connection, call):
    connection.used = True
    connection.cut()

    assert isinstance(call.got[0], ConnectionAbortedError)
    assert not connection.used


def test_a_closing_transport_is_neither_paused_nor_resumed(connection):
    connection.pause()
    connection.resume()
    connection.drop()
    connection.pause()
    connection.resume()

    assert connection.transport.done == ["pause", "resume", "abort"]
