"""Whose fault a failure is: row by row, and what only looks like one of them."""

import pytest

from llmgw.core.circuit import DEMOTED_FOR
from llmgw.core.classify import TABLE, Effect, Fault, Whose, after_recheck, classify
from llmgw.core.errors import FaultKind
from llmgw.core.failures import ErrorObject, parse_error
from llmgw.core.types import Provenance, RouteClass

NONE, FAILURE, DEMOTION, IF_SERVED = (
    Effect.NONE,
    Effect.FAILURE,
    Effect.DEMOTION,
    Effect.FAILURE_IF_SERVED,
)
KIND = FaultKind


def judged(fault, *, provenance=Provenance.OBSERVED, account=False, lane=RouteClass.SSE, **fields):
    return classify(fault, provenance=provenance, lane=lane, is_account=account, **fields)


def status(number, **fields):
    return Fault(KIND.STATUS, number, **fields)


def in_band(**fields):
    return Fault(KIND.IN_BAND, 200, **fields)


WITHOUT_ANSWER = [
    (KIND.CONNECT, "upstream_unreachable", False),
    (KIND.LOST, "upstream_unreachable", False),
    (KIND.DEAD, "upstream_unreachable", False),
    (KIND.TIMEOUT, "upstream_timeout", True),
    (KIND.CUT, "upstream_cut", False),
    (KIND.INVALID, "upstream_invalid", False),
    (KIND.EMPTY, "upstream_empty", False),
    (KIND.IDLE, "upstream_idle", False),
]


@pytest.mark.parametrize(("kind", "reason", "budgeted"), WITHOUT_ANSWER)
@pytest.mark.parametrize("account", [False, True], ids=["node", "account"])
def test_an_attempt_without_an_answer_is_the_upstreams_failure(kind, reason, budgeted, account):
    verdict = judged(Fault(kind), account=account)

    assert (verdict.whose, verdict.move_on, verdict.effect) == (Whose.UPSTREAM, True, FAILURE)
    assert (verdict.reason, verdict.demote_for) == (reason, DEMOTED_FOR)
    assert verdict.budgeted is budgeted


MODEL_SHAPES = [
    pytest.param(status(404, code="model_not_found"), id="the code at 404"),
    pytest.param(status(400, code="model_not_found", param="x"), id="the code at 400"),
    pytest.param(status(503, code="model_not_found"), id="the code at 503"),
    pytest.param(status(429, code="model_not_found", retry_after=3.0), id="the code at 429"),
    pytest.param(in_band(code="model_not_found", type="server_error"), id="the code in-band"),
]
BACKED_SHAPES = [
    pytest.param(status(404, type="invalid_request_error", param="model"), id="without a code"),
    pytest.param(
        status(404, type="invalid_request_error", param="model", code=1500), id="code is a number"
    ),
    pytest.param(in_band(type="invalid_request_error", param="model"), id="in-band, no code"),
    pytest.param(
        in_band(type="invalid_request_error", param="model", code=404), id="in-band, code 404"
    ),
    pytest.param(status(404, type="NotFoundError", param="model", code=404), id="vLLM"),
    pytest.param(status(404, type="NotFoundError", param="model"), id="vLLM without code"),
    pytest.param(in_band(type="NotFoundError", param="model", code=404), id="vLLM in-band"),
]


def is_model(verdict):
    return (verdict.whose, verdict.move_on, verdict.effect, verdict.reason) == (
        Whose.MODEL,
        True,
        FAILURE,
        "upstream_model_unavailable",
    )


@pytest.mark.parametrize("account", [False, True], ids=["node", "account"])
@pytest.mark.parametrize("provenance", [None, *Provenance])
@pytest.mark.parametrize("fault", MODEL_SHAPES)
def test_the_code_says_that_the_model_is_unavailable(fault, provenance, account):
    assert is_model(judged(fault, provenance=provenance, account=account))


@pytest.mark.parametrize("account", [False, True], ids=["node", "account"])
@pytest.mark.parametrize("fault", BACKED_SHAPES)
def test_two_shapes_say_it_where_the_assignment_advertises_the_model(fault, account):
    assert all(is_model(judged(fault, provenance=one, account=account)) for one in Provenance)
    assert not is_model(judged(fault, provenance=None, account=account))


NEAR_MISSES = [
    pytest.param(status(404), id="a bare 404"),
    pytest.param(status(404, code="not_found", param="model"), id="another code"),
    pytest.param(status(404, code="Model_Not_Found"), id="another spelling"),
    pytest.param(status(404, code="model_not_found_error"), id="a longer code"),
    pytest.param(status(404, type="model_not_found"), id="the code as type"),
    pytest.param(status(404, param="model_not_found"), id="the code as param"),
    pytest.param(
        status(404, type="invalid_request_error", param="model", code="x"), id="with another code"
    ),
    pytest.param(
        status(400, type="invalid_request_error", param="model"), id="without a code at 400"
    ),
    pytest.param(status(404, type="invalid_request_error", param="models"), id="another param"),
    pytest.param(status(404, type="invalid_request_error"), id="no param"),
    pytest.param(status(404, type="not_found_error", param="model"), id="another type"),
    pytest.param(
        status(404, type="NotFoundError", param="model", code=400), id="vLLM, another number"
    ),
    pytest.param(status(400, type="NotFoundError", param="model", code=404), id="vLLM at 400"),
    pytest.param(
        status(404, type="NotFoundError", param="response_id", code=404), id="vLLM, a response"
    ),
    pytest.param(
        in_band(type="invalid_request_error", param="model", code=400), id="in-band, code 400"
    ),
]


@pytest.mark.parametrize("fault", NEAR_MISSES)
def test_what_is_nearly_a_model_miss_is_the_clients(fault):
    verdict = judged(fault)

    assert (verdict.whose, verdict.move_on, verdict.effect) == (Whose.CLIENT, False, NONE)
    assert (verdict.reason, verdict.demote_for) == ("client_error", None)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"error":{"message":"model_not_found"}}', id="in prose"),
        pytest.param(b'{"error":{"error":{"code":"model_not_found"}}}', id="nested once more"),
        pytest.param(b'{"detail":{"code":"model_not_found"}}', id="in detail"),
        pytest.param(b'[{"error":{"code":"model_not_found"}}]', id="in an array"),
        pytest.param(b'{"error":[{"code":"model_not_found"}]}', id="an array inside"),
        pytest.param(b'{"error":"model_not_found"}', id="a string"),
        pytest.param(b'{"code":"model_not_found"}', id="at the top of what is no error"),
        pytest.param(b'{"error":{"code":["model_not_found"]}}', id="the code in a list"),
        pytest.param(b"model_not_found", id="no JSON"),
        pytest.param(
            b'{"error":{"code":"model_not_found"},"x":"' + b"x" * 65536 + b'"}', id="too large"
        ),
    ],
)
def test_bodies_that_only_look_like_it(body):
    verdict = judged(Fault.from_error(KIND.STATUS, parse_error(body), status=404))

    assert verdict.whose is Whose.CLIENT


def test_a_fault_is_what_was_found_without_its_text():
    error = ErrorObject("c", "t", "p", "free text")

    fault = Fault.from_error(KIND.STATUS, error, status=400, bare_detail=True, retry_after=2.0)

    assert fault == Fault(KIND.STATUS, 400, "c", "t", "p", True, 2.0)
    assert "free text" not in repr(fault)


STATUSES = [
    (400, Whose.CLIENT, NONE),
    (401, Whose.CLIENT, NONE),
    (403, Whose.CLIENT, NONE),
    (404, Whose.CLIENT, NONE),
    (422, Whose.CLIENT, NONE),
    (429, Whose.FULL, DEMOTION),
    (499, Whose.CLIENT, NONE),
    (500, Whose.UPSTREAM, IF_SERVED),
    (501, Whose.CLIENT, NONE),
    (502, Whose.UPSTREAM, FAILURE),
    (503, Whose.UPSTREAM, FAILURE),
    (504, Whose.UPSTREAM, FAILURE),
    (529, Whose.FULL, DEMOTION),
    (599, Whose.UPSTREAM, FAILURE),
]


@pytest.mark.parametrize(("number", "whose", "effect"), STATUSES)
@pytest.mark.parametrize("wrapped", [False, True], ids=["status", "in-band"])
def test_a_status_and_the_same_number_in_band_count_alike(number, whose, effect, wrapped):
    verdict = judged(in_band(code=number, type="server_error") if wrapped else status(number))

    assert (verdict.whose, verdict.effect) == (whose, effect)
    assert verdict.move_on is (whose is not Whose.CLIENT)
    assert verdict.budgeted is (whose is not Whose.CLIENT)


@pytest.mark.parametrize("number", [200, 302, 600, 999])
def test_a_status_that_is_no_error_is_no_answer_either(number):
    assert judged(status(number)).effect is FAILURE
    assert judged(in_band(code=number)).effect is FAILURE


@pytest.mark.parametrize("number", [401, 403])
def test_an_accounts_401_is_about_our_credential(number):
    for fault in (status(number, code="invalid_api_key"), in_band(code=number)):
        verdict = judged(fault, account=True)

        assert (verdict.whose, verdict.effect) == (Whose.CREDENTIAL, FAILURE)
        assert (verdict.reason, verdict.move_on) == ("upstream_unauthorized", True)
        assert not verdict.budgeted


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (status(429), DEMOTED_FOR),
        (status(429, retry_after=3.0), 3.0),
        (status(529, retry_after=9999.0), 300.0),
        (status(503, retry_after=7.0), 7.0),
        (in_band(type="overloaded_error"), DEMOTED_FOR),
    ],
)
def test_a_full_upstream_is_moved_back_as_long_as_it_asks(fault, seconds):
    verdict = judged(fault)

    assert (verdict.whose, verdict.effect, verdict.reason) == (
        Whose.FULL,
        DEMOTION,
        "upstream_full",
    )
    assert verdict.demote_for == seconds


NAMES = [
    ("server_error", Whose.UPSTREAM, FAILURE, "upstream_error"),
    ("api_error", Whose.UPSTREAM, FAILURE, "upstream_error"),
    ("ServiceUnavailableError", Whose.UPSTREAM, FAILURE, "upstream_error"),
    ("timeout_error", Whose.UPSTREAM, FAILURE, "upstream_timeout"),
    ("InternalServerError", Whose.UPSTREAM, IF_SERVED, "upstream_error"),
    ("overloaded_error", Whose.FULL, DEMOTION, "upstream_full"),
    ("server_is_overloaded", Whose.FULL, DEMOTION, "upstream_full"),
    ("rate_limit_exceeded", Whose.FULL, DEMOTION, "upstream_full"),
    ("rate_limit_error", Whose.FULL, DEMOTION, "upstream_full"),
]


@pytest.mark.parametrize(("name", "whose", "effect", "reason"), NAMES)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda name: in_band(code=name), id="as code"),
        pytest.param(lambda name: in_band(type=name), id="as type"),
        pytest.param(
            lambda name: in_band(code=name, type="invalid_request_error"), id="code first"
        ),
        pytest.param(lambda name: in_band(code="unheard_of", type=name), id="an unknown code"),
    ],
)
def test_names_inside_a_200_answer(name, whose, effect, reason, fault):
    verdict = judged(fault(name))

    assert (verdict.whose, verdict.effect, verdict.reason) == (whose, effect, reason)
    assert verdict.move_on


@pytest.mark.parametrize(
    "name",
    [
        *("invalid_request_error", "BadRequestError", "not_found_error", "permission_error"),
        "authentication_error",
    ],
)
def test_types_inside_a_200_answer_that_blame_the_client(name):
    assert judged(in_band(type=name)).whose is Whose.CLIENT
    assert judged(in_band(type=name, code="x")).whose is Whose.CLIENT
    assert judged(in_band(code=name)).whose is Whose.UPSTREAM


@pytest.mark.parametrize(
    "fault",
    [
        in_band(code="context_length_exceeded"),
        in_band(code="context_length_exceeded", type="server_error"),
        status(500, code="context_length_exceeded"),
        status(400, code="previous_response_not_found", param="previous_response_id"),
        in_band(code="content_filter"),
    ],
)
def test_a_prompt_that_no_upstream_can_take_is_the_clients(fault):
    verdict = judged(fault)

    assert (verdict.whose, verdict.move_on, verdict.effect) == (Whose.CLIENT, False, NONE)


@pytest.mark.parametrize(
    "fault", [in_band(), in_band(type="NotFoundError", param="model"), in_band(code=7)]
)
def test_anything_else_inside_a_200_answer_is_the_upstreams(fault):
    verdict = judged(fault)

    assert (verdict.whose, verdict.move_on, verdict.effect) == (Whose.UPSTREAM, True, FAILURE)


@pytest.mark.parametrize(
    ("fault", "fields", "asked"),
    [
        pytest.param(status(404), {}, True, id="nothing in it"),
        pytest.param(status(404, type="NotFoundError"), {}, True, id="vLLM on messages"),
        pytest.param(status(404, code="x", param="model"), {}, True, id="another code"),
        pytest.param(in_band(code=404), {}, True, id="in-band"),
        pytest.param(status(404, bare_detail=True), {}, False, id="a framework's detail"),
        pytest.param(status(404, param="response_id"), {}, False, id="another param"),
        pytest.param(status(404), {"provenance": None}, False, id="not advertised"),
        pytest.param(status(404), {"account": True}, False, id="an account"),
        pytest.param(status(404), {"lane": RouteClass.COMPACT}, False, id="compact"),
        pytest.param(status(404), {"visible": True}, False, id="after visible output"),
        pytest.param(status(400), {}, False, id="another status"),
        pytest.param(status(404, code="previous_response_not_found"), {}, False, id="a miss"),
    ],
)
def test_an_unexplained_404_asks_the_nodes_list(fault, fields, asked):
    verdict = judged(fault, **fields)

    assert verdict.recheck is asked
    assert verdict.whose is Whose.CLIENT


def test_the_list_decides_an_unexplained_404():
    verdict = judged(status(404))

    assert is_model(after_recheck(verdict, gone=True, lane=RouteClass.HTTP))
    assert not after_recheck(verdict, gone=True, lane=RouteClass.COMPACT).move_on
    kept = after_recheck(verdict, gone=False, lane=RouteClass.HTTP)
    assert (kept.whose, kept.move_on, kept.recheck) == (Whose.CLIENT, False, False)


EVERYTHING = [
    *(Fault(kind) for kind, _, _ in WITHOUT_ANSWER),
    *(status(number) for number, _, _ in STATUSES),
    *(in_band(type=name) for name, *_ in NAMES),
    status(404, code="model_not_found"),
]


@pytest.mark.parametrize("fault", EVERYTHING, ids=str)
def test_a_compact_route_moves_on_only_where_nothing_was_connected(fault):
    verdict = judged(fault, lane=RouteClass.COMPACT)

    assert verdict.move_on is (fault.kind is KIND.CONNECT)


@pytest.mark.parametrize("fault", EVERYTHING, ids=str)
def test_after_visible_output_nothing_moves_on_and_all_but_the_clients_fault_counts(fault):
    verdict = judged(fault, visible=True)

    assert not verdict.move_on
    assert verdict.effect is (NONE if verdict.whose is Whose.CLIENT else FAILURE)


def test_no_row_is_dead():
    """Each row is the first to match something: none is hidden behind an earlier one."""
    codes = (None, 400, 401, 404, 429, 500, 501, 502, 503, "x", *(name for name, *_ in NAMES))
    faults = [
        Fault(kind, number, code, kind_of, param, retry_after=wait)
        for kind in FaultKind
        for number in (401, 404, 429, 500, 502, 503)
        for code in (*codes, "model_not_found", "content_filter")
        for kind_of in (None, "invalid_request_error", "NotFoundError", *(n for n, *_ in NAMES))
        for param in (None, "model")
        for wait in (None, 1.0)
    ]
    first = {
        next(at for at, row in enumerate(TABLE) if row.matches(fault, provenance, account))
        for fault in faults
        for provenance, account in ((None, True), (Provenance.OBSERVED, False))
    }

    assert first == set(range(len(TABLE)))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        pytest.param(KIND.UNSUPPORTED, "websocket_unsupported", id="it takes no websocket"),
        pytest.param(KIND.EXHAUSTED, "gateway_exhausted", id="the gateway has no descriptor left"),
    ],
)
def test_what_the_upstream_cant_help_is_no_failure_and_another_may(kind, reason):
    verdict = judged(Fault(kind))

    assert (verdict.move_on, verdict.effect) == (True, NONE)
    assert (verdict.reason, verdict.demote_for) == (reason, None)
