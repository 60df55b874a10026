import pytest

from llmgw.sim.faults import (
    HEALTH,
    INFERENCE,
    LISTING,
    Fault,
    FaultKind,
    Faults,
    InvalidFault,
    build_fault,
    parse_fault,
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("hang", Fault(FaultKind.HANG), id="a kind alone"),
        pytest.param("hang-list", Fault(FaultKind.HANG_LIST), id="with a hyphen"),
        pytest.param(
            "status,status=503,times=2", Fault(FaultKind.STATUS, status=503, times=2), id="numbers"
        ),
        pytest.param("unload,model=7", Fault(FaultKind.UNLOAD, model="7"), id="a name of digits"),
        pytest.param("cut_before", Fault(FaultKind.CUT, after=0), id="cut before a token"),
        pytest.param("cut-after", Fault(FaultKind.CUT, after=1), id="cut after one"),
        pytest.param("cut-after,after=3", Fault(FaultKind.CUT, after=3), id="cut after three"),
    ],
)
def test_a_fault_is_read_from_one_word_of_a_command_line(text, fault):
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", 'a "fault" must be named; known: refuse', id="nothing"),
        pytest.param("explode", "unknown fault 'explode'; known: refuse", id="unknown kind"),
        pytest.param("hang,often", "'often' is not name=value", id="no value"),
        pytest.param("hang,color=1", "unknown setting 'color'; known: status", id="setting"),
        pytest.param("status,status=200", "status must be a whole number from 400", id="success"),
        pytest.param("status,status=x", "status must be a whole number", id="no number"),
        pytest.param("hang,times=0", "times must be a whole number from 1", id="never"),
    ],
)
def test_a_fault_that_cannot_be_read_says_why(text, why):
    with pytest.raises(InvalidFault, match=why):
        parse_fault(text)


@pytest.mark.parametrize(
    "members",
    [{"fault": "hang", "model": 3}, {"fault": "hang", "times": True}, {"fault": 3}, {}],
    ids=["model is a number", "times is a bool", "fault is a number", "empty"],
)
def test_members_of_a_wrong_type_are_refused(members):
    with pytest.raises(InvalidFault):
        build_fault(members)


@pytest.mark.parametrize("kind", FaultKind)
def test_a_fault_comes_back_from_its_json_as_it_was(kind):
    fault = Fault(kind, status=503, after=2, model="m", times=3)

    assert build_fault(fault.to_json()) == fault
    assert build_fault(Fault(kind).to_json()) == Fault(kind)


@pytest.mark.parametrize("kind", FaultKind)
def test_each_kind_strikes_in_one_place(kind):
    places = [group for group in (INFERENCE, LISTING, HEALTH) if kind in group]

    assert len(places) == (0 if kind in (FaultKind.REFUSE, FaultKind.UNLOAD) else 1)


def test_a_fault_with_times_is_used_up():
    faults = Faults()
    faults.add(Fault(FaultKind.HANG, times=2))

    taken = [faults.take(INFERENCE) for _ in range(3)]

    assert [one is not None for one in taken] == [True, True, False]
    assert faults.active == ()


def test_a_fault_without_times_stays_until_cleared():
    faults = Faults()
    faults.add(Fault(FaultKind.HANG))

    assert faults.take(INFERENCE) == faults.take(INFERENCE) == Fault(FaultKind.HANG)
    faults.clear()
    assert faults.take(INFERENCE) is None


def test_a_fault_of_one_model_leaves_the_others_alone():
    faults = Faults()
    faults.add(Fault(FaultKind.STATUS, model="m", times=1))

    assert faults.take(INFERENCE, "n") is None
    assert faults.take(INFERENCE, "m") is not None


def test_the_first_fault_of_the_asked_kinds_is_taken():
    faults = Faults()
    for kind in (FaultKind.HANG_LIST, FaultKind.HANG, FaultKind.RESET):
        faults.add(Fault(kind, times=1))

    assert faults.take(INFERENCE).kind is FaultKind.HANG
    assert [one.kind for one in faults.active] == [FaultKind.HANG_LIST, FaultKind.RESET]


@pytest.mark.parametrize(
    ("fault", "has"),
    [
        pytest.param(Fault(FaultKind.UNLOAD, model="m"), True, id="of this model"),
        pytest.param(Fault(FaultKind.UNLOAD), True, id="of any model"),
        pytest.param(Fault(FaultKind.UNLOAD, model="n"), False, id="of another model"),
        pytest.param(Fault(FaultKind.HANG, model="m"), False, id="of another kind"),
    ],
)
def test_a_question_uses_nothing_up(fault, has):
    faults = Faults()
    faults.add(fault)

    assert faults.has(FaultKind.UNLOAD, "m") is has
    assert faults.active == (fault,)
