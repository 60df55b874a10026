"""One request over scripted upstreams: a gateway of two nodes, its client, its rows."""

from llmgw.core.discovery import Listed
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.policy import KeyRing
from llmgw.core.settle import RequestRow
from llmgw.core.types import CLUSTER
from llmgw.runtime.gateway import Gateway
from llmgw.runtime.registry import Registry
from tests.builders import call, config, node, principal
from tests.fakes.downstream import FakeDownstream
from tests.fakes.exchange import JSON, FakeExchange, FakeUpstreams
from tests.fakes.stores import FakeDatabase

ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
HI = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
IN_BAND = b'data: {"error":{"message":"SECRET","type":"server_error","code":null}}\n\n'
REJECTS = b'{"error":{"message":"SECRET","type":"x","param":"model","code":"model_not_found"}}'
ANSWER = b'{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3}}'

REFUSED = UpstreamError(FaultKind.CONNECT)
RESET = UpstreamError(FaultKind.LOST)
CUT = UpstreamError(FaultKind.CUT)
TWO_NODES = (node("a"), node("b", 8001))


def answers(body: bytes = ANSWER, status: int = 200, **fields: object) -> FakeExchange:
    return FakeExchange(status, JSON, (body,), **fields)


def streams(*reads: bytes, **fields: object) -> FakeExchange:
    return FakeExchange(reads=reads, **fields)


class FakeWatch:
    def __init__(self) -> None:
        self.unreached: list[str] = []
        self.statuses: list[int] = []
        self.gone = False
        self.asked = 0

    def connection_failed(self, upstream) -> None:
        self.unreached.append(upstream.name)

    def answered(self, upstream, status: int) -> None:
        self.statuses.append(status)

    async def model_is_gone(self, upstream, model: str) -> bool:
        self.asked += 1
        return self.gone


class Scene:
    """A gateway of nodes `a` and `b` (or accounts) that both list model `m`."""

    def __init__(self, *script, upstreams=TWO_NODES, stores=None, **sections) -> None:
        self.config = config(*upstreams, models=("m",), **sections)
        self.registry = Registry(self.config)
        for one in upstreams:
            self.registry.discovery_event(one, Listed(("m",), 0.0))
        self.upstreams = FakeUpstreams(*script)
        self.watch = FakeWatch()
        self.database = FakeDatabase()
        self.gateway = Gateway(
            self.config,
            KeyRing.open(),
            registry=self.registry,
            upstreams=self.upstreams,
            watch=self.watch,
            stores=stores or self.database.stores,
            instance="gw1",
        )
        self.client = FakeDownstream()

    @property
    def settled(self) -> list[list[tuple[str, str | None]]]:
        """How the attempts of each request ended."""
        rows = (done.attempts for done, _ in self.database.requests.recorded)
        return [[(one.outcome.value, one.reason) for one in attempts] for attempts in rows]

    @property
    def row(self) -> RequestRow:
        return self.database.requests.recorded[-1][0].request

    async def serves(self, made=None, pool=CLUSTER, **who) -> FakeDownstream:
        await self.gateway.serve(made or call(), principal(pool, **who), self.client)
        return self.client

    @property
    def outcomes(self) -> list[str]:
        assert len(self.settled) == 1, "settled once"
        return [outcome for outcome, _ in self.settled[0]]
