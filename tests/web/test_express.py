"""Which bytes of a connection are taken as a request, and what comes of them."""

import pytest

from llmgw.core.config import Config, GatewayConfig
from llmgw.web import express as module
from llmgw.web.express import ExpressDoor, ExpressRide, Gathering
from tests.fakes.gateway import FakeGateway, keyring
from tests.fakes.two_ways import chat

KEY = ("authorization", "Bearer good")
BODY = b'{"model":"m1","messages":[]}'
HEAD = len(chat(BODY, token=KEY)) - len(BODY)


carries_a_fake = pytest.mark.as_written("what carries its requests is no ExpressCall")


class Carried:
    label, assignment, overhead, errand = "m1", "cluster/a", 0.0, None
    left = False

    def leave(self):
        self.left = True


class Carrier:
    """Takes all that it is asked for, unless told not to."""

    def __init__(self):
        self.asked = []
        self.takes = True

    def begin(self, asked):
        self.asked.append(asked)
        return Carried() if self.takes else None


class Connection:
    is_ending = False
    kept = None

    def ride_over(self, *, keep):
        self.kept = keep

    def ride_ended(self):
        self.kept = "the task says"

    def hand_over(self, ride):
        self.handed = ride

    def write(self, data):
        self.written = data


class Doorway:
    def __init__(self, **config):
        self.gateway = FakeGateway(
            config=Config(gateway=GatewayConfig(**config)), keyring=keyring("good")
        )
        self.carrier, self.records = Carrier(), []
        self.door = ExpressDoor(self.gateway, self.carrier, tell=self.records.append)
        self.connection = Connection()

    def take(self, data):
        return self.door.take(self.connection, data)


def sent(body=BODY, **options):
    return chat(body, token=options.pop("token", KEY), **options)


@carries_a_fake
def test_a_request_that_is_there_as_a_whole_is_a_ride():
    doorway = Doorway()

    ride = doorway.take(sent(path="/v1/chat/completions?a=b"))

    assert isinstance(ride, ExpressRide)
    (asked,) = doorway.carrier.asked
    assert (asked.call.model, asked.call.stream, asked.call.body) == ("m1", False, BODY)
    assert asked.call.target == "/v1/chat/completions?a=b"
    assert asked.call.headers == (("host", "gateway"), KEY)
    assert asked.call.request_id == "req_0"
    assert (asked.principal.name, asked.client.name) == ("key-good", "key-good")


@carries_a_fake
def test_requests_with_one_head_share_what_is_remembered_of_it():
    doorway = Doorway()

    for body in (BODY, b'{"model":"m2"}'):
        doorway.take(sent(body))
    doorway.take(sent(headers=(("x-a", "b"),)))

    first, second, third = (asked.memo for asked in doorway.carrier.asked)
    assert first is second
    assert third is not first


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(sent()[: HEAD - 1], id="no whole head"),
        pytest.param(sent() + b"P", id="more than a request"),
        pytest.param(sent().replace(b"POST", b"GET"), id="another method"),
        pytest.param(sent(path="/v1/other"), id="another path"),
        pytest.param(sent(path="/v1/files"), id="a form's route"),
        pytest.param(sent(token=("authorization", "Bearer bad")), id="a bad key"),
        pytest.param(sent(token=("x-a", "b")), id="no key"),
        pytest.param(sent(b"{"), id="no JSON"),
        pytest.param(sent(b""), id="no body"),
        pytest.param(sent(b'{"model":""}'), id="no model"),
        pytest.param(sent(headers=(("Expect", "100-continue"),)), id="who waits"),
        pytest.param(sent(b'{"model":"m","x":"' + b"y" * 500 + b'"}'), id="too much"),
    ],
)
def test_whatever_else_there_is_is_the_parsers(data):
    doorway = Doorway(max_request_body_bytes=400)

    assert doorway.take(data) is None
    assert doorway.carrier.asked == []


def test_what_nobody_carries_is_the_parsers_too():
    doorway = Doorway()
    doorway.carrier.takes = False

    assert doorway.take(sent()) is None
    assert doorway.records == []


@carries_a_fake
def test_a_model_that_the_key_may_not_use_is_refused_by_the_loop():
    doorway = Doorway()
    doorway.gateway.keyring = keyring("good", models=("m2",))

    assert doorway.take(sent()) is None
    assert doorway.take(sent(b'{"model":"m2"}')) is not None


@carries_a_fake
def test_where_origins_are_told_apart_a_page_is_answered_by_the_loop():
    doorway = Doorway(cors_origins=("https://a.example",))

    assert doorway.take(sent(headers=(("Origin", "https://a.example"),))) is None
    assert doorway.take(sent()).downstream.own.endswith(b"vary: origin\r\n")
    assert Doorway().take(sent(headers=(("Origin", "https://a.example"),))) is not None


@carries_a_fake
def test_a_head_counts_as_long_as_its_key_ring_does(monkeypatch):
    now = 100.0
    monkeypatch.setattr(module.time, "time", lambda: now)
    doorway = Doorway()
    doorway.gateway.keyring = keyring("good", expires_at=200.0)

    assert doorway.take(sent()) is not None
    now = 200.0
    assert doorway.take(sent()) is None
    doorway.gateway.keyring = keyring("good")
    assert doorway.take(sent()) is not None
    doorway.gateway.keyring = keyring("other")
    assert doorway.take(sent()) is None


@carries_a_fake
def test_a_line_that_is_new_with_each_request_is_no_new_head():
    doorway = Doorway()

    for number in range(5):
        assert doorway.take(sent(headers=(("traceparent", f"00-{number}"), ("x-a", "b"))))

    asked = doorway.carrier.asked
    assert [one.call.headers[2:] for one in asked] == [
        (("traceparent", f"00-{number}"), ("x-a", "b")) for number in range(5)
    ]
    assert [(one.varying, one.values) for one in asked[2:]] == [
        ((2,), (b"00-%d" % number,)) for number in (2, 3, 4)
    ]
    assert asked[2].memo is asked[3].memo is asked[4].memo
    assert doorway.take(sent(headers=(("traceparent", ""), ("x-a", "b")))) is None
    assert (
        doorway.take(sent(headers=(("traceparent", "0"), ("x-a", "b")), token=("a", "b"))) is None
    )


@carries_a_fake
def test_such_a_head_counts_as_long_as_its_key_ring_does(monkeypatch):
    now = 100.0
    monkeypatch.setattr(module.time, "time", lambda: now)
    doorway = Doorway()
    doorway.gateway.keyring = keyring("good", expires_at=200.0)
    heads = [sent(headers=(("traceparent", str(number)),)) for number in range(9)]

    assert all(doorway.take(one) for one in heads[:5])
    now = 200.0
    assert doorway.take(heads[5]) is None
    doorway.gateway.keyring = keyring("other")
    assert doorway.take(heads[6]) is None
    doorway.gateway.keyring = keyring("good")
    assert all(doorway.take(one) for one in heads[7:])


@carries_a_fake
def test_a_body_that_still_comes_is_gathered():
    doorway = Doorway()

    gathering = doorway.take(sent()[: HEAD + 5])

    assert isinstance(gathering, Gathering)
    assert gathering.head == sent()[:HEAD]
    assert (gathering.at, len(gathering.body)) == (5, len(BODY))
    gathering.body[5:] = BODY[5:]
    assert isinstance(gathering.begin(), ExpressRide)
    assert doorway.carrier.asked[0].call.body == BODY


@carries_a_fake
def test_so_is_one_behind_a_line_that_varies():
    doorway = Doorway()
    for number in range(4):
        doorway.take(sent(headers=(("x-id", str(number)),)))

    gathering = doorway.take(sent(headers=(("x-id", "7"),))[:-5])
    gathering.body[-5:] = BODY[-5:]
    assert isinstance(gathering.begin(), ExpressRide)

    asked = doorway.carrier.asked[-1]
    assert asked.call.headers[-1] == ("x-id", "7")
    assert (asked.call.body, asked.values) == (BODY, (b"7",))


def test_nobody_gets_much_room_by_a_word(monkeypatch):
    monkeypatch.setattr(module, "MOST_GATHERED", len(BODY))

    assert Doorway().take(sent()[:HEAD]) is not None
    assert Doorway().take(sent(BODY + b" ")[:HEAD]) is None


@carries_a_fake
def test_a_ride_that_is_over_is_told_of_once():
    doorway = Doorway()
    ride = doorway.take(sent())
    ride.downstream.respond(200, b"content-type: a/b\r\n", b"hi")

    ride.over()
    ride.leave()

    assert doorway.connection.kept is True
    (record,) = doorway.records
    assert record[:4] == ("POST", "/v1/chat/completions", 200, 2)
    assert record.request_id == "req_0"
    assert (record.ending, record.key, record.model) == ("whole", "key-good", "m1")
    assert (record.assignment, record.attempts) == ("cluster/a", 1)


@carries_a_fake
def test_a_client_that_leaves_is_told_of():
    doorway = Doorway()
    ride = doorway.take(sent())
    carried = ride.carried

    ride.leave()

    assert carried.left
    assert [(one.ending, one.status) for one in doorway.records] == [("left", 0)]


@carries_a_fake
async def test_what_goes_wrong_in_the_task_is_answered():
    doorway = Doorway()
    ride = doorway.take(sent())

    async def fails():
        raise RuntimeError("SECRET")

    ride.carried.go_on = fails
    ride.hand_over()
    assert doorway.connection.handed is ride

    kept = await ride.go_on()

    assert doorway.connection.written.startswith(b"HTTP/1.1 500 ")
    assert b"SECRET" not in doorway.connection.written
    assert doorway.connection.kept == "the task says"
    assert [one.status for one in doorway.records] == [500]
    assert kept in (True, False)
