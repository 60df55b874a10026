import asyncio

import pytest


@pytest.mark.parametrize(
    ("fault", "ends_with"),
    [pytest.param("reset", ConnectionResetError, id="reset"), pytest.param("cut", b"", id="cut")],
)
async def test_a_cut_is_read_as_an_end_and_a_reset_as_an_error(node, fault, ends_with):
    await node.inject(fault)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(node.url.rpartition(":")[2]))
    body = b'{"model":"m","stream":true}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % len(body) + body)

    if ends_with == b"":
        got = await reader.read()
        assert got.startswith(b"HTTP/1.1 200")
        assert not got.endswith(b"0\r\n\r\n")
    else:
        with pytest.raises(ends_with):
            await reader.read()
    writer.close()
