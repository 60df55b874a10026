import asyncio
import stat

import pytest

from llmgw.daemon.control import ControlFailed, ControlServer, OperationRefused, ask


@pytest.fixture
def path(tmp_path):
    return tmp_path / "control.sock"


async def echo(asked):
    if asked.get("x") == "no":
        raise OperationRefused("not today")
    return {"got": asked.get("x")}


@pytest.fixture
async def server(path):
    server = ControlServer(path, {"status": echo})
    await server.start()
    yield server
    server.close()
    for _ in range(3):  # connections that were answered close in the loop's next turns
        await asyncio.sleep(0)


async def ask_aside(path, operation, **arguments):
    return await asyncio.to_thread(ask, path, operation, **arguments)


async def send(path, data):
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_an_operation_is_handed_its_arguments_and_answers(path, server):
    assert await ask_aside(path, "status", x=1) == {"got": 1}


async def test_an_operation_that_refuses_says_why(path, server):
    with pytest.raises(ControlFailed, match="not today"):
        await ask_aside(path, "status", x="no")


async def test_what_is_no_operation_is_refused_by_name(path, server):
    with pytest.raises(ControlFailed, match="there are: status"):
        await ask_aside(path, "stop")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        pytest.param(b"what?\n", b'{"error": "not a line of JSON"}\n', id="not JSON"),
        pytest.param(b"\xff\n", b'{"error": "not a line of JSON"}\n', id="not UTF-8"),
        pytest.param(
            b"[" * 60_000 + b"\n", b'{"error": "not a line of JSON"}\n', id="without a bottom"
        ),
        pytest.param(
            b"[]\n", b'{"error": "no such operation; there are: status"}\n', id="no object"
        ),
        pytest.param(b"x" * 70_000, b"", id="a line without end"),
    ],
)
async def test_a_caller_that_does_not_speak_it(path, server, line, answer):
    assert await send(path, line) == answer
    assert await ask_aside(path, "status", x=2) == {"got": 2}


async def test_only_the_service_and_its_group_may_ask(path, server):
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


async def test_the_path_goes_with_the_server(path, server):
    server.close()

    assert not path.exists()


async def test_a_successor_takes_the_path_over_and_keeps_it(path, server):
    async def tell(_):
        return {"who": "new"}

    successor = ControlServer(path, {"status": tell})
    await successor.start()

    server.close()

    assert await ask_aside(path, "status") == {"who": "new"}
    successor.close()


def test_without_a_gateway_nobody_answers(path):
    with pytest.raises(ControlFailed, match="no gateway answers"):
        ask(path, "status")


async def test_something_else_that_answers_is_no_gateway(path):
    gone = asyncio.Event()

    async def other(reader, writer):
        await reader.readline()  # else whoever asks may find the pipe broken before it reads
        writer.write(b"220 hello\r\n")
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_unix_server(other, str(path))

    with pytest.raises(ControlFailed, match="does not answer as a gateway does"):
        await ask_aside(path, "status")
    await gone.wait()
    server.close()
    await server.wait_closed()


async def test_a_server_that_was_never_started_can_be_closed(path):
    path.touch()

    ControlServer(path, {}).close()

    assert path.exists()


async def test_a_path_that_cannot_be_bound_is_an_error_of_the_start(tmp_path):
    with pytest.raises(FileNotFoundError):
        await ControlServer(tmp_path / "none" / "control.sock", {}).start()
