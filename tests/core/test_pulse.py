from llmgw.core.pulse import GONE_AFTER, PING_EVERY, PONGS_WAITING, Beat, Pulse


def test_a_peer_that_speaks_is_not_asked():
    pulse = Pulse(0.0)
    pulse.hear()

    assert pulse.beat(PING_EVERY) is Beat.NOTHING
    assert pulse.beat(PING_EVERY + 1) is Beat.NOTHING


def test_a_silent_peer_is_pinged_once_for_each_silence_and_then_given_up():
    pulse = Pulse(0.0)
    times = [1.0, 20.0, 21.0, 40.0, 59.0, 60.0]

    beats = [pulse.beat(at) for at in times]

    assert beats == [
        Beat.NOTHING,
        Beat.PING,
        Beat.NOTHING,
        Beat.PING,
        Beat.NOTHING,
        Beat.GONE,
    ]


def test_an_answer_begins_the_silence_anew():
    pulse = Pulse(0.0)
    pulse.beat(PING_EVERY)
    pulse.hear()
    pulse.beat(PING_EVERY + 1)

    assert pulse.beat(PING_EVERY + 2) is Beat.NOTHING
    assert pulse.beat(2 * PING_EVERY + 1) is Beat.PING


def test_nobody_is_given_up_while_its_answers_can_not_be_expected():
    pulse = Pulse(0.0)

    assert pulse.beat(GONE_AFTER, may_end=False) is Beat.NOTHING
    assert pulse.beat(GONE_AFTER + 1) is Beat.NOTHING


def test_pongs_for_a_peer_that_takes_nothing_are_bounded():
    pulse = Pulse(0.0)

    answered = [pulse.answers(is_stuck=True) for _ in range(PONGS_WAITING + 3)]

    assert answered == [True] * PONGS_WAITING + [False] * 3
    assert pulse.answers(is_stuck=False)
    assert pulse.answers(is_stuck=True)
