"""What may be carried by callbacks alone, and to whom it goes."""

from dataclasses import replace

import pytest

from llmgw.core.circuit import Circuit, CircuitKey, CircuitState, DemotionKey
from llmgw.core.types import CLUSTER, AssignmentId, KeyId, RouteClass, Strategy
from llmgw.runtime.asked import OWN_ID, marked, sent_to
from llmgw.runtime.express import Express
from tests.builders import call, node, principal
from tests.fakes.asking import FakeAsked
from tests.fakes.patience import until
from tests.fakes.rawserver import json_answer
from tests.fakes.two_ways import ground

CHAT = b'{"model":"m1","messages":[]}'
MANY = [json_answer()] * 9


def asked(body=CHAT, *, who=None, memo=None, **options):
    return FakeAsked(call(body, **options), who, memo)


async def begun(one, express, made):
    carried = express.begin(made)
    if carried is not None:
        await made.ended.wait()
    return carried


async def test_nodes_take_turns_and_are_asked_as_any_request_asks_them():
    async with ground(False, a=MANY, b=MANY) as one:
        express = Express(one.gateway)

        took = [(await begun(one, express, asked())).assignment for _ in range(3)]

        assert took == ["cluster/a", "cluster/b", "cluster/a"]
        head = one.nodes["a"].server.requests[-1].head
        assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:")
        assert b"\r\nx-request-id: req_1\r\n" in head
        assert head.endswith(b"\r\ncontent-length: 28")
        assert one.nodes["a"].asked[0][1] == CHAT
        await until(lambda: not one.running)


async def test_a_turn_is_taken_only_by_who_was_sent():
    """Without an idle connection nothing was done, and the loop is to take that turn."""
    async with ground(False, a=MANY, b=MANY, warm=0) as one:
        express = Express(one.gateway)

        assert express.begin(asked()) is None
        assert express.begin(asked()) is None
        await one.warm_up()
        one.warm = 1
        await one.warm_up()

        assert (await begun(one, express, asked())).assignment == "cluster/a"
        assert not one.running


async def test_what_an_upstream_gets_is_remembered_with_the_head():
    async with ground(False, a=MANY, b=MANY) as one:
        express, memo = Express(one.gateway), {}

        await begun(one, express, asked(memo=memo))
        sent = memo[AssignmentId("cluster/a")]
        for _ in range(2):
            await begun(one, express, asked(b'{"model":"m1"}', memo=memo, request_id="req_77"))

        assert memo[AssignmentId("cluster/a")] is sent
        heads = [it.head for it in one.nodes["a"].server.requests if b"/v1/" in it.head]
        assert heads[1] == heads[0].replace(b"req_1", b"req_77").replace(b": 28", b": 14")
        memo[AssignmentId("cluster/a")] = sent._replace(upstream=None)
        for _ in range(2):
            await begun(one, express, asked(memo=memo))
        assert memo[AssignmentId("cluster/a")].upstream is not None


def traced(number, *, memo, varying=("x-request-id", "x-id"), **options):
    own = {"x-request-id": f"mine-{number}", "x-id": f"{number}"}
    made = call(CHAT, headers=(("x-b", "c"), *own.items(), ("x-a", "b")), **options)
    places = tuple(at for at, (name, _) in enumerate(made.headers) if name in varying)
    values = tuple(own[name].encode() for name in varying)
    return FakeAsked(made, None, memo, varying=places, values=values)


async def test_what_varies_is_put_into_what_is_remembered():
    async with ground(False, a=MANY, b=MANY) as one:
        express, memo = Express(one.gateway), {}

        for number in range(4):
            await begun(one, express, traced(number, memo=memo, request_id=f"req_{number}"))

        heads = [it.head for it in one.nodes["a"].server.requests if b"/v1/" in it.head]
        own = b"x-id: %d", b"x-request-id: req_%d"
        assert [[line % at in heads[at // 2] for line in own] for at in (0, 2)] == [[True] * 2] * 2
        assert not any(b"mine" in head for head in heads)
        assert heads[0].replace(b"x-id: 0", b"x-id: 2").replace(b"req_0", b"req_2") == heads[1]
        assert memo[AssignmentId("cluster/a")].slots == (1, OWN_ID)


async def test_where_nothing_that_varies_is_passed_on_there_are_no_slots():
    async with ground(False, a=MANY, b=MANY) as one:
        express, memo = Express(one.gateway), {}

        await begun(one, express, traced(1, memo=memo, varying=("x-request-id",)))

        assert memo[AssignmentId("cluster/a")].slots == ()


@pytest.mark.parametrize("varying", [(), (0,)], ids=["none", "another"])
def test_what_could_be_taken_for_a_mark_is_not_marked(varying):
    made = call(CHAT, headers=(("x-id", "1"), ("x-a", "b\x01")))

    with pytest.raises(ValueError, match="control character"):
        marked(made, varying)


def test_a_head_without_its_length_at_the_end_is_not_remembered():
    with pytest.raises(ValueError, match="length"):
        sent_to(node("a"), call(CHAT), b"POST / HTTP/1.1\r\ncontent-length: 28\r\nx: y\r\n\r\n")


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: asked(who=principal(max_in_flight=1)), id="a limited key"),
        pytest.param(lambda: asked(who=principal(explain=True)), id="a curious one"),
        pytest.param(lambda: asked(b'{"model":"m2"}'), id="an unknown model"),
        pytest.param(lambda: asked(path="/v1/responses"), id="a response that is stored"),
        pytest.param(
            lambda: asked(
                b'{"model":"m1","store":false,"previous_response_id":"r"}', path="/v1/responses"
            ),
            id="a response that goes on",
        ),
        pytest.param(lambda: asked(headers=(("x-a", "b\nc"),)), id="a line that can not be sent"),
    ],
)
async def test_what_has_to_be_waited_for_is_left_to_the_loop(made):
    async with ground(False, a=MANY, b=MANY) as one:
        assert Express(one.gateway).begin(made()) is None
        assert one.nodes["a"].asked == one.nodes["b"].asked == []
        assert not one.running


async def test_a_response_that_nobody_keeps_needs_no_loop():
    async with ground(False, a=MANY, b=MANY) as one:
        made = asked(b'{"model":"m1","store":false,"input":"x"}', path="/v1/responses")

        assert await begun(one, Express(one.gateway), made)


async def test_traces_need_the_loop():
    async with ground(False, a=MANY) as one:
        one.gateway.tracer = object()

        assert Express(one.gateway).begin(asked()) is None


async def test_a_probe_needs_the_loop():
    key = CircuitKey(CLUSTER, AssignmentId("cluster/a"), "m1", RouteClass.HTTP)
    async with ground(False, a=MANY, b=MANY) as one:
        one.gateway.board.put(key, Circuit(CircuitState.HALF_OPEN))
        express = Express(one.gateway)

        carried = [express.begin(asked()) for _ in range(2)]

        assert any(one is None for one in carried)


@pytest.mark.parametrize("key", [KeyId("k"), KeyId("other")])
async def test_who_is_demoted_for_this_key_comes_last(key):
    async with ground(False, a=MANY, b=MANY) as one:
        demotion = DemotionKey(CLUSTER, key, "m1", AssignmentId("cluster/a"))
        one.gateway.board.demote(demotion, one.gateway.board.wall() + 60)
        express = Express(one.gateway)

        took = [(await begun(one, express, asked())).assignment for _ in range(2)]

        first = "cluster/b" if key == "k" else "cluster/a"
        assert took == [first, "cluster/b"]


async def test_a_session_stays_where_it_is():
    async with ground(False, a=MANY, b=MANY) as one:
        express = Express(one.gateway)
        tied = (("x-session-id", "s1"),)

        took = {(await begun(one, express, asked(headers=tied))).assignment for _ in range(5)}

        assert len(took) == 1


async def test_another_strategy_asks_the_plan():
    async with ground(False, a=MANY, b=MANY) as one:
        config = one.gateway.config
        pool = replace(config.pools[0], strategy=Strategy.LEAST_LOAD)
        one.gateway.replace(replace(config, pools=(pool, *config.pools[1:])), one.keyring)
        (busy,) = (it for it in config.nodes if it.name == "a")
        leave = one.gateway.registry.enter(busy)
        express = Express(one.gateway)

        took = {(await begun(one, express, asked())).assignment for _ in range(4)}
        leave()

        assert took == {"cluster/b"}
