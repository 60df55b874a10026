"""Rendezvous hashing: the same for everybody, even, and calm when members come and go."""

from collections import Counter

import pytest

from llmgw.core.affinity import LOOK_AT, NOWHERE, Ring, affinity_of, home_of, seed_of, weight


def ring(count):
    return Ring((f"p/n{index}", f"n{index}") for index in range(count))


def tied(**fields):
    usual = {"pool": "p", "key": "k", "model": "m", "session": None, "cache_key": None}
    return affinity_of(**usual | fields)


POINTS = [tied(session=f"s{index}").session for index in range(2000)]


def test_a_request_tied_to_nothing_has_no_point():
    assert tied() is NOWHERE


@pytest.mark.parametrize("field", ["pool", "key", "model"])
def test_points_are_scoped(field):
    here, there = (
        tied(session="s", cache_key="s"),
        tied(session="s", cache_key="s", **{field: "x"}),
    )

    assert here.session not in (here.cache, there.session)
    assert here.cache != there.cache
    assert tied(session="s", cache_key="s") == here


def test_hashes_are_the_same_in_every_process():
    assert seed_of("p/a") == 0xD8B26D8E57ECB489
    assert weight(seed_of("p/a"), 12345) == 0x72A3A760484267C3
    assert home_of("p", "m") != home_of("p", None)


@pytest.mark.parametrize("count", [3, 10, 200])
def test_points_are_spread_evenly(count):
    counts = Counter(ring(count).nearest(point, 1)[0] for point in POINTS)

    mean = len(POINTS) / count
    assert len(counts) == count if count < 100 else len(counts) > count * 0.95
    assert max(counts.values()) < mean * (1.4 if count < 100 else 3.5)


@pytest.mark.parametrize("count", [4, 100])
def test_a_member_that_leaves_moves_only_its_own_points(count):
    before, after = ring(count), ring(count - 1)
    gone = f"n{count - 1}"
    moved = [
        point
        for point in POINTS
        if before.nearest(point, 1)[0] not in (gone, after.nearest(point, 1)[0])
    ]

    assert len(moved) <= (0 if count <= LOOK_AT else len(POINTS) * 2 / count)


def test_a_small_ring_ranks_by_weight_alone():
    small, point = ring(8), POINTS[0]

    names = [f"n{index}" for index in range(8)]
    ranked = sorted(names, key=lambda name: -weight(seed_of(f"p/{name}"), point))
    assert small.nearest(point, 3) == ranked[:3]
    assert small.nearest(point, 99) == ranked


def test_only_what_is_kept_is_ranked():
    point = POINTS[0]
    first, second = ring(5).nearest(point, 2)

    assert ring(5).nearest(point, 1, lambda one: one != first) == [second]
    assert ring(5).nearest(point, 1, lambda one: False) == []
    assert ring(0).nearest(point, 1) == []
