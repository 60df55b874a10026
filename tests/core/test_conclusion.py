import pytest

from llmgw.core.conclusion import LAST_EVENTS, Outcome, outcome_of
from llmgw.core.failures import ErrorObject
from llmgw.core.types import Dialect
from tests.fakes.events import (
    COMPLETED,
    CREATED,
    DONE,
    ENGINE_DIED,
    FAILED,
    HELLO,
    MESSAGE_STOP,
    OVERLOADED,
    STOP,
    TEXT_DELTA,
    USAGE,
    chunk,
    data,
    named,
)

OPEN = Outcome()
WHOLE = Outcome(is_terminal=True)
SAID = Outcome(is_terminal=True, is_said=True)


def failed(*error):
    return Outcome(True, True, ErrorObject(*error) if error else None, is_said=True)


DIED = failed(500, "InternalServerError", None, "m")
LATE_FILTER = data({"choices": [{"index": 0, "finish_reason": None, "offsets": {"check": 4}}]})


@pytest.mark.parametrize(
    ("stream", "outcome"),
    [
        pytest.param(HELLO, OPEN, id="output alone"),
        pytest.param(HELLO + DONE, SAID, id="done without a finish reason"),
        pytest.param(HELLO + STOP, WHOLE, id="a finish reason without done"),
        pytest.param(STOP + LATE_FILTER + USAGE, WHOLE, id="filter and usage after the finish"),
        pytest.param(chunk(index=1, content="B") + STOP, OPEN, id="one of two choices finished"),
        pytest.param(
            chunk(index=1, content="B") + STOP + chunk(index=1, finish="length"), WHOLE, id="both"
        ),
        pytest.param(data({"choices": [7, {"finish_reason": "stop"}]}), WHOLE, id="odd choices"),
        pytest.param(USAGE, OPEN, id="no choice at all"),
        pytest.param(HELLO + ENGINE_DIED + DONE, DIED, id="an error, then done"),
        pytest.param(HELLO + data({"error": "crash"}), failed(), id="text as error"),
        pytest.param(b'data: cut off..."finish_reason": "stop"}]}\n\n', WHOLE, id="elided"),
        pytest.param(chunk(content='the "error" [DONE]') + HELLO, OPEN, id="words of the model"),
        pytest.param(b"", OPEN, id="nothing"),
    ],
)
def test_a_chat_ends_with_done_an_error_or_the_finish_of_every_choice(stream, outcome):
    assert outcome_of(stream, Dialect.CHAT) == outcome


@pytest.mark.parametrize(
    ("dialect", "stream", "outcome"),
    [
        (Dialect.RESPONSES, CREATED + TEXT_DELTA, OPEN),
        (Dialect.RESPONSES, TEXT_DELTA + COMPLETED, SAID),
        (Dialect.RESPONSES, TEXT_DELTA + COMPLETED + DONE, SAID),
        (Dialect.RESPONSES, FAILED, failed("server_error", None, None, "m")),
        (
            Dialect.RESPONSES,
            named("response.incomplete", response={"incomplete_details": {"reason": "odd"}}),
            failed(),
        ),
        (Dialect.MESSAGES, MESSAGE_STOP, SAID),
        (
            Dialect.MESSAGES,
            OVERLOADED + MESSAGE_STOP,
            failed(None, "overloaded_error", None, "m"),
        ),
        (Dialect.RESPONSES, data({"choices": [{"finish_reason": "stop"}]}), OPEN),
        (Dialect.JSON, data({"type": "transcript.text.delta"}), OPEN),
        (Dialect.JSON, ENGINE_DIED, DIED),
    ],
)
def test_the_other_dialects_end_with_the_event_that_says_so(dialect, stream, outcome):
    assert outcome_of(stream, dialect) == outcome


def test_only_the_last_events_are_read_for_it():
    assert outcome_of(DONE + USAGE * (LAST_EVENTS - 2), Dialect.CHAT) == SAID
    assert outcome_of(DONE + USAGE * LAST_EVENTS, Dialect.CHAT) == OPEN
