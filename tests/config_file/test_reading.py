from dataclasses import dataclass

import pytest

from llmgw.config_file.faults import Report
from llmgw.config_file.kinds import DURATION, NAME, integer
from llmgw.config_file.reading import (
    read_section,
    read_tables,
    refuse_same,
    refuse_unknown,
)
from llmgw.config_file.table import Field, Section


@dataclass(frozen=True)
class Timer:
    every: float = 3.0
    times: int = 1


@dataclass(frozen=True)
class Pet:
    name: str
    legs: int = 4


TIMER = Section("timer", "", Timer, (Field("every", DURATION, ""), Field("times", integer(), "")))
PETS = Section(
    "zoo.pets",
    "",
    Pet,
    (
        Field("name", NAME, "", required=True),
        Field("legs", integer(0), ""),
        Field("wings", integer(0), "", ignored=True),
    ),
    many=True,
    children=("toys",),
    refused={"secret": "not here"},
)


@pytest.fixture
def report():
    return Report()


def places(report):
    return {fault.place: (fault.message, fault.hint) for fault in report.faults}


def test_keys_left_out_have_their_defaults(report):
    row = read_section(TIMER, {"timer": {"times": 5}}, report)

    assert row.value == Timer(3.0, 5)
    assert row.given == {"times"}
    assert row.at("every") == "timer.every"
    assert not report.faults


def test_a_section_left_out_is_all_defaults(report):
    assert read_section(TIMER, {}, report).value == Timer()
    assert not report.faults


def test_each_faulty_key_is_told_and_the_rest_is_read(report):
    row = read_section(TIMER, {"timer": {"every": 3, "timse": 2, "times": 7}}, report)

    assert row.value == Timer(3.0, 7)
    assert places(report)["timer.timse"] == ("unknown key", 'did you mean "times"?')
    assert "timer.every" in places(report)


@pytest.mark.parametrize("found", [5, "x", [{}]])
def test_a_section_that_is_no_table(report, found):
    assert read_section(TIMER, {"timer": found}, report).value == Timer()
    assert places(report) == {"timer": ("must be a table, written [timer]", "")}


@pytest.mark.parametrize("found", [5, {"name": "x"}, ["x"], [{"name": "x"}, 5]])
def test_a_list_of_tables_that_is_none(report, found):
    assert read_tables(PETS, {"pets": found}, "zoo.pets", report) == []
    message = "must be a list of tables, each written [[zoo.pets]]"
    assert places(report) == {"zoo.pets": (message, "")}


def test_a_table_without_a_required_key_is_left_out(report):
    found = {"pets": [{"legs": 2}, {"name": "cat", "toys": []}, {"name": 5}]}

    rows = read_tables(PETS, found, "zoo.pets", report)

    assert [(row.place, row.value) for row in rows] == [("zoo.pets[1]", Pet("cat"))]
    assert places(report)["zoo.pets[0].name"] == ("is missing", "")
    assert places(report)["zoo.pets[2].name"][0] == "must be a string"


def test_an_ignored_key_is_checked_but_nothing_is_made_of_it(report):
    rows = read_tables(PETS, {"pets": [{"name": "owl", "wings": 2}]}, "pets", report)
    read_tables(PETS, {"pets": [{"name": "owl", "wings": "two"}]}, "pets", report)

    assert rows[0].value == Pet("owl")
    assert list(places(report)) == ["pets[0].wings"]


def test_a_tempting_key_is_refused_with_what_to_do_instead(report):
    read_tables(PETS, {"pets": [{"name": "owl", "secret": "CANARY"}]}, "pets", report)

    assert places(report) == {"pets[0].secret": ("not here", "")}


def test_an_unknown_section_of_the_file(report):
    refuse_unknown({"timmer": {}}, frozenset({"timer"}), "", report)

    assert places(report) == {"timmer": ("unknown section", 'did you mean "timer"?')}


def test_a_second_table_with_the_same_value(report):
    rows = read_tables(PETS, {"pets": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, "p", report)

    refuse_same(rows, "name", report)

    assert places(report) == {"p[2].name": ("is that of p[0] too", "")}
