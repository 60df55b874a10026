"""prometheus_client's metrics without its locks and checks: one thread writes, any may read.

Each request counts a dozen things; with a lock for each of them that alone would cost a tenth of
what the request does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

import prometheus_client
from prometheus_client.samples import Sample

Labels = dict[str, str] | None
Rows = Iterable[tuple[tuple[str, ...], float]]  # label values and the value


class Counter(prometheus_client.Counter):
    def inc(self, amount: float = 1, exemplar: Labels = None) -> None:
        self._value._value += amount


class Gauge(prometheus_client.Gauge):
    def inc(self, amount: float = 1) -> None:
        self._value._value += amount

    def dec(self, amount: float = 1) -> None:
        self._value._value -= amount


class Histogram(prometheus_client.Histogram):
    def observe(self, amount: float, exemplar: Labels = None) -> None:
        self._sum._value += amount
        self._buckets[bisect_left(self._upper_bounds, amount)]._value += 1


class GaugeTable(Gauge):
    """A gauge whose series are told together, when they are read: with a thousand nodes, to make
    an object for each of them takes longer than a request may wait."""

    _rows: Callable[[], Rows] = staticmethod(tuple)

    def tell(self, rows: Callable[[], Rows]) -> None:
        """Who knows the series; the last caller wins. May be called from another thread."""
        self._rows = rows

    def _multi_samples(self) -> Iterable[Sample]:
        yield from super()._multi_samples()
        names = self._labelnames
        for values, value in self._rows():
            yield Sample("", dict(zip(names, values, strict=True)), value, None, None)
