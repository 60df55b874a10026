"""From a client's bytes to those for a node, by what is known of the head: `make bench-micro`.

Nothing is sent: no connection to the node is idle. A batch is 1,000 requests.
"""

import itertools
from hashlib import sha256

import pytest

from llmgw.core.config import KeyConfig
from llmgw.core.discovery import Listed
from llmgw.core.policy import KeyRing
from llmgw.core.types import CLUSTER
from llmgw.runtime.express import Express
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.registry import Registry
from llmgw.upstream.request import render_head
from llmgw.web.express import ExpressDoor
from tests.builders import config, node
from tests.fakes.live import FakeWatch
from tests.fakes.stores import FakeDatabase

REQUESTS = 1000
BODY = b'{"model":"m1","messages":[{"role":"user","content":"hi"}]}'
SHORT = (
    "host: gateway:8000",
    "content-type: application/json",
    "authorization: Bearer gw-bench-0123456789abcdef",
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
    "Authorization: Bearer gw-bench-0123456789abcdef",
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
    "a new head each": ("openai-beta: {0:x}",),
}


class Upstreams:
    """All connections are busy."""

    def __init__(self):
        self.heads = 0

    def render(self, upstream, request):
        return render_head(upstream.url, request)

    def pool(self, upstream):
        return self

    def begin(self, head, body):
        self.heads += 1


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("usual", [SHORT, SDK], ids=["short", "SDK"])
def test_head(benchmark, usual, own):
    built = config(node("a", 8001), node("b", 8002), models=("m1",))
    digest = sha256(b"gw-bench-0123456789abcdef").hexdigest()
    upstreams = Upstreams()
    gateway = Gateway(
        built,
        KeyRing.from_keys([KeyConfig("bench", digest, pool=CLUSTER)]),
        registry=Registry(built),
        upstreams=upstreams,
        watch=FakeWatch(),
        stores=FakeDatabase().stores,
        instance="abc123",
    )
    for one in built.nodes:
        gateway.registry.discovery_event(one, Listed(("m1",), 0.0))
    door = ExpressDoor(gateway, Express(gateway), tell=print)
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
    assert upstreams.heads == 42 * REQUESTS
