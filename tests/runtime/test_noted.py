"""What an attempt has shown of its node is told to whom it concerns."""

import pytest

from llmgw.core.classify import Fault
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.types import AssignmentId
from llmgw.observe.metrics import TIMEOUTS
from llmgw.runtime.answer import Broken, Refused, Served
from llmgw.runtime.noted import note
from tests.builders import node
from tests.fakes.scene import FakeWatch

A = Candidate(AssignmentId("cluster/a"), node("a"))


@pytest.mark.parametrize(
    ("result", "unreached", "statuses"),
    [
        (Served(200), [], [200]),
        (Served(200, fault=Fault(FaultKind.IN_BAND, 500)), [], [200]),
        (Broken(Fault(FaultKind.CUT), 200), [], [200]),
        (Refused(Fault(FaultKind.STATUS, 503)), [], [503]),
        (Refused(Fault(FaultKind.CONNECT)), ["a"], []),
        (Refused(Fault(FaultKind.LOST)), ["a"], []),
        (Refused(Fault(FaultKind.DEAD)), [], []),
        (Refused(Fault(FaultKind.INVALID)), [], []),
    ],
)
def test_who_watches_is_told(result, unreached, statuses):
    watch = FakeWatch()

    note(watch, A, result)

    assert (watch.unreached, watch.statuses) == (unreached, statuses)


@pytest.mark.parametrize(
    ("result", "label"),
    [
        (Refused(Fault(FaultKind.TIMEOUT)), "answer"),
        (Broken(Fault(FaultKind.IDLE), 200), "event"),
        (Served(200), None),
    ],
)
def test_what_was_waited_for_too_long_is_counted(result, label):
    def counted():
        return {one: TIMEOUTS.labels(one)._value.get() for one in ("answer", "event")}

    before = counted()
    note(FakeWatch(), A, result)

    assert {one for one, count in counted().items() if count > before[one]} == (
        {label} if label else set()
    )
