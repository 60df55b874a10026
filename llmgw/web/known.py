"""Heads that have been read, with all that follows from them: bounded, and hard to flush.

What came once only waits, and what waits is pushed out by its like. Heads that are new each time
therefore cost those nothing that come again and again.
"""

from __future__ import annotations

from typing import NamedTuple

from llmgw.core.policy import KeyRing, Principal
from llmgw.core.routes import Route
from llmgw.core.types import AssignmentId, Headers
from llmgw.core.varying import Shapes, cut_out, marks_of
from llmgw.core.wire import Asker
from llmgw.runtime.asked import Sent
from llmgw.runtime.ports import Client
from llmgw.web.plain import LONGEST_HEAD

MOST_KNOWN = 1024  # heads
MOST_WAITING = 256  # heads that came once
MOST_CUTS = 16  # sets of lines that vary


class Known(NamedTuple):
    """A head that has been read, with all that follows from it alone."""

    keyring: KeyRing
    expires_at: float | None  # of the key, unix time
    route: Route
    target: str
    headers: Headers
    asker: Asker
    principal: Principal
    client: Client
    has_origin: bool
    memo: dict[AssignmentId, Sent]
    varying: tuple[int, ...] = ()  # which of the headers
    values: tuple[bytes, ...] = ()  # of these


class Heads:
    """What is remembered, by the head without the line of its length."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Known] = {}
        self._waiting: dict[bytes, Known] = {}
        self._cuts: list[tuple[bytes, ...]] = []  # that used last comes first
        self._shapes = Shapes()

    def find(self, head: bytes) -> Known | None:
        """One that is not in `kept`, or does not hold any more as it stands there."""
        self.kept.pop(head, None)
        known = self._waiting.pop(head, None)
        if known is not None:
            self._keep(head, known)
            return known
        if len(head) > LONGEST_HEAD:
            return None
        for place, marks in enumerate(self._cuts):
            cut = cut_out(head, marks)
            if cut is None:
                continue
            known = self._find_cut(cut.key)
            if known is not None:
                if place:
                    del self._cuts[place]
                    self._cuts.insert(0, marks)
                return _with(known, cut.values)
        return None

    def learn(self, head: bytes, known: Known, names: tuple[str, ...]) -> Known:
        """Remember one that was just read; `names` are those of its headers. What is returned is
        for this request."""
        self._wait(head, known)  # as it is: its values may yet turn out to be always the same
        varying = self._shapes.varying(names, known.headers)
        if not varying:
            return known
        marks = marks_of(head, varying)
        cut = cut_out(head, marks)
        if cut is None:
            return known
        if marks not in self._cuts:
            del self._cuts[MOST_CUTS - 1 :]
            self._cuts.append(marks)
        known = known._replace(memo={}, varying=varying, values=cut.values)
        self._wait(cut.key, known)
        return known

    def _find_cut(self, key: bytes) -> Known | None:
        known = self.kept.get(key)
        if known is None:
            known = self._waiting.pop(key, None)
            if known is not None:
                self._keep(key, known)
        return known

    def _keep(self, key: bytes, known: Known) -> None:
        if len(self.kept) >= MOST_KNOWN:
            del self.kept[next(iter(self.kept))]
        self.kept[key] = known

    def _wait(self, key: bytes, known: Known) -> None:
        self.kept.pop(key, None)
        self._waiting.pop(key, None)
        if len(self._waiting) >= MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = known


def _with(known: Known, values: tuple[bytes, ...]) -> Known:
    """The same with a request's own values."""
    headers = list(known.headers)
    for slot, at in enumerate(known.varying):
        headers[at] = (headers[at][0], values[slot].decode())
    return Known(
        known.keyring,
        known.expires_at,
        known.route,
        known.target,
        tuple(headers),
        known.asker,
        known.principal,
        known.client,
        known.has_origin,
        known.memo,
        known.varying,
        values,
    )
