"""Capabilities: configuration first, then what was seen, else unknown."""

import pytest

from llmgw.core.admin_capabilities import Answer, Capability, Source, capabilities_of
from llmgw.core.admin_seen import UNSEEN, Sighting
from llmgw.core.types import RouteClass
from tests.builders import account, node


def of(upstream, seen=UNSEEN) -> dict[str, Capability]:
    return {one.name: one for one in capabilities_of(upstream, seen)}


def test_unknown_stays_unknown():
    found = of(node("n"))

    assert list(found) == ["responses", "messages", "streaming", "tools", "websocket"]
    assert {(one.answer, one.source) for one in found.values()} == {(Answer.UNKNOWN, None)}


def test_configured_routes_say_yes_and_no():
    found = of(node("n", routes=frozenset({"/v1/responses"})))

    assert found["responses"] == Capability("responses", Answer.YES, Source.CONFIGURED)
    assert found["messages"] == Capability("messages", Answer.NO, Source.CONFIGURED)


def test_configuration_outweighs_what_was_seen():
    seen = Sighting(routes=frozenset({"/v1/messages"}))

    found = of(account("a", routes=frozenset()), seen)

    assert found["messages"].answer is Answer.NO


def test_what_was_served_is_there():
    seen = Sighting(routes=frozenset({"/v1/responses"}), streamed=True)

    found = of(node("n"), seen)

    assert found["responses"] == Capability("responses", Answer.YES, Source.SEEN)
    assert found["streaming"] == Capability("streaming", Answer.YES, Source.SEEN)
    assert found["messages"].answer is Answer.UNKNOWN


def test_a_route_that_was_refused_as_such_is_not_there():
    found = of(node("n"), Sighting(absent=frozenset({"/v1/messages"})))

    assert found["messages"] == Capability("messages", Answer.NO, Source.SEEN)


@pytest.mark.parametrize(
    ("upstream", "served", "expected"),
    [
        (node("n", websocket=True), False, (Answer.YES, Source.CONFIGURED)),
        (node("n", websocket=False), True, (Answer.NO, Source.CONFIGURED)),
        (node("n"), True, (Answer.YES, Source.SEEN)),
        (node("n"), False, (Answer.UNKNOWN, None)),
    ],
    ids=["configured", "configured against what was seen", "seen", "neither"],
)
def test_websocket(upstream, served, expected):
    lane = RouteClass.WEBSOCKET if served else RouteClass.SSE
    found = of(upstream, Sighting(served={("m", lane): 1.0}))["websocket"]

    assert (found.answer, found.source) == expected
