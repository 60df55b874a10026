"""`docs/behaviour.md` in step with the code: its failover table is what `classify` says, and its
diagrams show each way that the state machines have, and no other."""

import itertools
import re
from pathlib import Path

from llmgw.core import circuit, discovery, health
from llmgw.core.classify import Effect, Fault, classify
from llmgw.core.config import CircuitsConfig
from llmgw.core.errors import FaultKind
from llmgw.core.types import Provenance, RouteClass

PAGE = (Path(__file__).parents[1] / "docs" / "behaviour.md").read_text()

STATUS, IN_BAND = FaultKind.STATUS, FaultKind.IN_BAND
NODE, ACCOUNT = False, True
KNOWN = Provenance.OBSERVED
FAULTS = {
    "no connection, or lost before any response byte": (Fault(FaultKind.CONNECT), None, NODE),
    "the node's health turned dead before any response byte": (Fault(FaultKind.DEAD), None, NODE),
    "no head, or no visible event, in time": (Fault(FaultKind.TIMEOUT), None, NODE),
    "an answer cut short": (Fault(FaultKind.CUT), None, NODE),
    "an answer that is no HTTP, or not JSON where JSON was said": (
        Fault(FaultKind.INVALID),
        None,
        NODE,
    ),
    "a stream that ended without a visible event": (Fault(FaultKind.EMPTY), None, NODE),
    "429, 529, 503 with `retry-after`": (Fault(STATUS, 429), None, NODE),
    "500": (Fault(STATUS, 500), None, NODE),
    "502, 503, 504 and other statuses from 502": (Fault(STATUS, 503), None, NODE),
    "501": (Fault(STATUS, 501), None, NODE),
    "the code `model_not_found`, at any status or in-band": (
        Fault(STATUS, 400, code="model_not_found"),
        None,
        NODE,
    ),
    "404, type `NotFoundError`, param `model`, where the assignment advertises the model": (
        Fault(STATUS, 404, code=404, type="NotFoundError", param="model"),
        KNOWN,
        NODE,
    ),
    "the same where it does not": (
        Fault(STATUS, 404, code=404, type="NotFoundError", param="model"),
        None,
        NODE,
    ),
    "another 404 of a node that advertises the model": (Fault(STATUS, 404), KNOWN, NODE),
    "401, 403 of an account": (Fault(STATUS, 401), KNOWN, ACCOUNT),
    "401, 403 of a node, and any other 4xx": (Fault(STATUS, 400), KNOWN, NODE),
    "in-band `rate_limit_exceeded`, `overloaded_error` and the like": (
        Fault(IN_BAND, 200, code="rate_limit_exceeded"),
        None,
        NODE,
    ),
    "in-band `server_error`, `api_error` and the like, and what no row names": (
        Fault(IN_BAND, 200, code="server_error"),
        None,
        NODE,
    ),
    "in-band `invalid_request_error` and the like": (
        Fault(IN_BAND, 200, type="invalid_request_error"),
        None,
        NODE,
    ),
}
EFFECTS = {
    Effect.NONE: "none",
    Effect.DEMOTION: "demotion only",
    Effect.FAILURE: "failure",
    Effect.FAILURE_IF_SERVED: "failure, if a later candidate serves",
}


def row_of(text: str) -> str:
    fault, provenance, is_account = FAULTS[text]
    verdict = classify(fault, provenance=provenance, lane=RouteClass.HTTP, is_account=is_account)
    tried = (
        "yes" if verdict.move_on else "if its list no longer has it" if verdict.recheck else "no"
    )
    return f"| {text} | {verdict.whose} | {tried} | {EFFECTS[verdict.effect]} |"


def table() -> str:
    """To be put into the page where this test fails."""
    head = ["| what came | whose | next candidate tried? | circuit |", "|---|---|---|---|"]
    return "\n".join(head + [row_of(text) for text in FAULTS])


def diagram(title: str) -> set[tuple[str, str]]:
    """The ways of a mermaid diagram, those from a state to itself left out."""
    section = PAGE.split(f"### {title}\n")[1].split("```")[1]
    return set(re.findall(r"^ *(\w+) --> (\w+)(?::|$)", section, re.MULTILINE))


def ways(start, events, advance, *, deep: int) -> set[tuple[str, str]]:
    """Every change of state that a history of so many events can bring."""
    found = set()
    for history in itertools.product(events, repeat=deep):
        state = start
        for event in history:
            after = advance(state, event)
            found.add((state, after))
            state = after
    return found


def names(found) -> set[tuple[str, str]]:
    return {(a, b) for a, b in found if a != b}


def test_the_failover_table_is_what_the_code_decides():
    assert table() in PAGE


def test_the_diagram_of_discovery():
    events = [
        discovery.Listed(("m",), 0.0),
        discovery.Listed((), 0.0),
        discovery.ListingFailed("x"),
    ]
    found = ways(
        discovery.ModelDiscovery(),
        events,
        lambda state, event: discovery.advance(state, event, fail_threshold=3),
        deep=6,
    )

    assert diagram("Discovery") == names((a.state.value, b.state.value) for a, b in found)


def test_the_diagram_of_health():
    events = [health.Passed(), health.Failed(connection=True)]
    found = ways(
        health.NodeHealth(),
        events,
        lambda state, event: health.advance(state, event, fail_threshold=3),
        deep=5,
    )

    assert diagram("Health") == names((a.checked.value, b.checked.value) for a, b in found)


def test_the_diagram_of_circuits():
    config = CircuitsConfig(failure_threshold=2)
    events = [
        circuit.Failed("x"),
        circuit.Failed("x", "probe"),
        circuit.Succeeded(),
        circuit.Succeeded("probe"),
        circuit.Leased("probe"),
        circuit.Neutral("probe"),
    ]
    found = ways(
        circuit.CLOSED,
        events,
        lambda state, event: (
            circuit.advance(state, event, now=10.0**9, config=config)
            if not isinstance(event, circuit.Failed)
            else circuit.advance(state, event, now=0.0, config=config)
        ),
        deep=5,
    )

    assert diagram("Circuits") == names((a.state.value, b.state.value) for a, b in found)
