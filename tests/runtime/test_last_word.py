"""The last failure is the client's answer: a status, or after commit an event."""

from llmgw.core.classify import Fault, classify
from llmgw.core.config import Config
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.final import Failure
from llmgw.core.types import AssignmentId, RouteClass
from llmgw.runtime.answer import Errand
from llmgw.runtime.last_word import answer_failure
from tests.builders import node, streaming
from tests.fakes.downstream import FakeDownstream

A = Candidate(AssignmentId("cluster/a"), node("a"))
BODY = b'{"error":{"message":"no","type":"server_error","code":"x"}}'


def failed(**errand):
    fault = Fault(FaultKind.STATUS, 503)
    verdict = classify(fault, provenance=None, lane=RouteClass.SSE, is_account=False)
    headers = (("content-type", "application/json"), ("retry-after", "7"))
    made = Errand(streaming(), Config(), FakeDownstream(), "m", **errand)
    return [Failure(A, fault, verdict, headers, BODY, None)], made


def test_nothing_was_sent_so_it_is_a_status():
    failures, errand = failed()

    assert answer_failure(failures, errand) == 503

    client = errand.downstream
    assert (client.status, client.body, client.ending) == (503, BODY, "whole")
    assert client.header("retry-after") == "7"
    assert client.header("x-llmgw-attempts") is None


def test_who_wants_to_know_is_told_how_many_tries_it_took():
    failures, errand = failed(explain=True)

    answer_failure(failures, errand)

    assert errand.downstream.header("x-llmgw-attempts") == "0"


def test_a_head_was_sent_so_it_is_an_event_and_the_end():
    failures, errand = failed()
    errand.downstream.commit(200, ())

    assert answer_failure(failures, errand) == 503

    assert errand.downstream.body.startswith(b"data: {")
    assert b'"error"' in errand.downstream.body
    assert errand.downstream.ending == "whole, closed"


def test_an_early_head_is_not_sent_any_more():
    class Early:
        stopped = False

        def stop(self):
            self.stopped = True

    failures, errand = failed(early=Early())

    answer_failure(failures, errand)

    assert errand.early.stopped
