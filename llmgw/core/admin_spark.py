"""Sparklines as geometry: numbers in, the points of an SVG path out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 120.0
HEIGHT = 28.0
MARGIN = 2.0  # a line is as wide as this: at the edge half of it would be cut off


@dataclass(frozen=True, slots=True)
class Spark:
    """`lines` and `areas` are paths; a gap in the numbers is a gap in the picture."""

    line: str
    area: str
    dots: tuple[tuple[float, float], ...]  # numbers that stand alone


def spark_of(values: Sequence[float | None], *, ceiling: float | None = None) -> Spark:
    """The oldest first; None is a gap. `ceiling`: the value at the top, else the greatest one.
    Nothing but zeros is an empty picture: a line at the bottom would look like something.
    """
    if not any(values):
        return Spark("", "", ())
    top = ceiling or max(one for one in values if one is not None)
    runs = _runs(
        [
            None if one is None else _point(at, len(values), one / top)
            for at, one in enumerate(values)
        ]
    )
    long = [run for run in runs if len(run) > 1]
    return Spark(
        line="".join(_line(run) for run in long),
        area="".join(_area(run) for run in long),
        dots=tuple(run[0] for run in runs if len(run) == 1),
    )


Point = tuple[float, float]


def _point(at: int, of: int, share: float) -> Point:
    x = MARGIN + at * (WIDTH - 2 * MARGIN) / max(1, of - 1)
    y = HEIGHT - MARGIN - min(1.0, share) * (HEIGHT - 2 * MARGIN)
    return round(x, 1), round(y, 1)


def _runs(points: Sequence[Point | None]) -> list[list[Point]]:
    runs: list[list[Point]] = [[]]
    for one in points:
        if one is not None:
            runs[-1].append(one)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _line(run: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in run)


def _area(run: Sequence[Point]) -> str:
    return f"M{run[0][0]:g} {HEIGHT:g}L{_line(run)[1:]}L{run[-1][0]:g} {HEIGHT:g}Z"


@dataclass(frozen=True, slots=True)
class Bar:
    """One span of a timeline, from its left edge."""

    x: float
    width: float


def bars_of(spans: Sequence[tuple[float, float]], *, begin: float, end: float) -> list[Bar]:
    """Spans of time as bars between two moments; one that took no time can still be seen."""
    whole = max(end - begin, 1e-9)
    found = []
    for start, stop in spans:
        width = min(WIDTH, max(MARGIN, (stop - start) / whole * WIDTH))
        x = min(max(0.0, (start - begin) / whole * WIDTH), WIDTH - width)
        found.append(Bar(round(x, 1), round(width, 1)))
    return found
