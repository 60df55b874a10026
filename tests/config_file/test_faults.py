import pytest

from llmgw.config_file.faults import ConfigError, Fault, FileMissing, Note, Report, nearest


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (Fault("nodes[2].url", "is missing"), "nodes[2].url: is missing"),
        (Fault("a", "unknown key", 'did you mean "b"?'), 'a: unknown key (did you mean "b"?)'),
        (Fault("", "no such file"), "no such file"),
    ],
)
def test_a_fault_is_one_line_with_its_place_first(fault, line):
    assert str(fault) == line
    assert str(Note(fault.place, fault.message, fault.hint)) == line


def test_every_line_names_the_file_once():
    error = ConfigError(
        [Fault("", "/a.toml: there is no such file"), Fault("log.level", "is odd")]
    )

    assert error.lines("/a.toml") == (
        "/a.toml: there is no such file",
        "/a.toml: log.level: is odd",
    )


def test_all_faults_are_told_at_once():
    report = Report()
    report.fault("a", "one")
    report.note("b", "odd")
    report.fault("c", "two")

    with pytest.raises(ConfigError, match="a: one; c: two") as raised:
        report.raise_faults()

    assert [fault.place for fault in raised.value.faults] == ["a", "c"]
    assert [note.place for note in raised.value.notes] == ["b"]


def test_a_report_without_faults_raises_nothing():
    report = Report()
    report.note("b", "odd")

    report.raise_faults()


def test_a_missing_file_is_a_fault_of_its_own_kind():
    assert issubclass(FileMissing, ConfigError)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("health_intervall", 'did you mean "health_interval"?'),
        ("Listen", 'did you mean "listen"?'),
        ("zzz", ""),
    ],
)
def test_the_nearest_valid_name_is_offered_if_one_is_near(word, hint):
    assert nearest(word, {"listen", "health_interval"}) == hint
