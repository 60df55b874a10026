"""From a client's bytes to those for a node, by what is known of the head: `make bench-micro`.

Nothing is sent: no connection to the node is idle. A batch is 1,000 requests.
"""

import gc
import itertools

import pytest

from llmgw.core.types import CLUSTER
from tests.fakes.busy import TOKENS, Busy

REQUESTS = 1000
BODY = b'{"model":"m1","messages":[{"role":"user","content":"hi"}]}'
SHORT = (
    "host: gateway:8000",
    "content-type: application/json",
    "authorization: Bearer " + TOKENS[CLUSTER],
)
SDK = (
    "Host: gateway:8000",
    "Accept-Encoding: gzip, deflate",
    "Connection: keep-alive",
    "Accept: application/json",
    "Content-Type: application/json",
    "User-Agent: AsyncOpenAI/Python 3.1.0",
    "X-Stainless-Lang: python",
    "X-Stainless-Package-Version: 3.1.0",
    "X-Stainless-OS: Linux",
    "X-Stainless-Arch: x64",
    "X-Stainless-Runtime: CPython",
    "X-Stainless-Runtime-Version: 3.11.7",
    "Authorization: Bearer " + TOKENS[CLUSTER],
    "X-Stainless-Async: async:asyncio",
    "x-stainless-retry-count: 0",
    "x-stainless-read-timeout: 600",
)
OWN = {
    "one head": (),
    "a line that varies": ("traceparent: 00-{0:032x}-{0:016x}-01",),
    "three that vary": (
        "traceparent: 00-{0:032x}-{0:016x}-01",
        "x-request-id: {0:032x}",
        "idempotency-key: stainless-python-retry-{0:036x}",
    ),
    "a new value each of a line that counts": ("openai-beta: {0:x}",),
    "a new name each": ("x-{0:x}: a",),
}


@pytest.fixture(autouse=True)
def collected_as_in_the_daemon():
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("usual", [SHORT, SDK], ids=["short", "SDK"])
def test_head(benchmark, usual, own):
    busy = Busy()
    door = busy.door()
    numbers = itertools.count()

    def requests():
        batch = [
            "\r\n".join(
                (
                    "POST /v1/chat/completions HTTP/1.1",
                    *usual,
                    *[line.format(number) for line in OWN[own]],
                    f"content-length: {len(BODY)}\r\n\r\n",
                )
            ).encode()
            + BODY
            for number in itertools.islice(numbers, REQUESTS)
        ]
        return (batch,), {}

    def take(batch):
        for data in batch:
            door.take(None, data)

    benchmark.pedantic(take, setup=requests, rounds=40, warmup_rounds=2)
    assert len(busy.upstreams.heads) == 42 * REQUESTS
