"""Pictures as geometry."""

import pytest

from llmgw.core.admin_spark import HEIGHT, MARGIN, WIDTH, Bar, Spark, bars_of, spark_of


def test_a_line_goes_from_edge_to_edge_and_from_bottom_to_top():
    spark = spark_of([0, 5, 10])

    assert spark.line == "M2 26L60 14L118 2"
    assert spark.area == "M2 28L2 26L60 14L118 2L118 28Z"
    assert spark.dots == ()


@pytest.mark.parametrize("values", [[], [None, None], [0, 0], [0.0, None]])
def test_nothing_is_an_empty_picture(values):
    assert spark_of(values) == Spark("", "", ())


def test_a_gap_in_the_numbers_is_a_gap_in_the_line():
    spark = spark_of([1, 1, None, None, 1, 1])

    assert spark.line.count("M") == 2
    assert spark.area.count("Z") == 2


def test_a_number_that_stands_alone_is_a_dot():
    spark = spark_of([None, 1, None])

    assert spark.line == ""
    assert spark.dots == ((WIDTH / 2, MARGIN),)


def test_a_single_number_stays_inside():
    assert spark_of([3]).dots == ((MARGIN, MARGIN),)


def test_a_ceiling_makes_pictures_comparable():
    assert spark_of([0.5, 0.5], ceiling=1.0).line == f"M2 {HEIGHT / 2:g}L118 {HEIGHT / 2:g}"
    assert spark_of([2.0, 2.0], ceiling=1.0).line == "M2 2L118 2"


def test_bars_stand_where_their_time_was():
    assert bars_of([(0, 1), (1, 4)], begin=0, end=4) == [Bar(0, 30), Bar(30, 90)]


def test_a_bar_that_took_no_time_can_be_seen_and_stays_inside():
    first, last = bars_of([(0, 0), (4, 4)], begin=0, end=4)

    assert first == Bar(0, MARGIN)
    assert last == Bar(WIDTH - MARGIN, MARGIN)


def test_a_request_without_length_has_bars_all_the_same():
    assert bars_of([(5, 5)], begin=5, end=5) == [Bar(0, MARGIN)]
