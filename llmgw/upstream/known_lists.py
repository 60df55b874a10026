"""What lists were read before: most answers of a node are its last one again.

Some engines stamp each answer (vLLM), so that only its names are the same; then they are read,
and the page is still the object that was known. Nodes that serve the same share it too.
"""

from __future__ import annotations

from typing import NamedTuple

from llmgw.core.fleet import Place
from llmgw.core.listing import Page

MOST_KEPT = 4096  # places, and pages; beyond that all are read anew


class _Seen(NamedTuple):
    digest: int
    size: int
    page: Page


class KnownLists:
    """The last page of each upstream, and by which body it was told."""

    def __init__(self) -> None:
        self._seen: dict[Place, _Seen] = {}
        self._pages: dict[Page, Page] = {}

    def find(self, place: Place, body: bytes) -> Page | None:
        """The page that this body gave last time, if it is the same to the byte.

        Told by 64 bits that only this process can compute (SipHash with a key of its own): a
        body is not kept for it.
        """
        seen = self._seen.get(place)
        if seen is None or seen.size != len(body) or seen.digest != hash(body):
            return None
        return seen.page

    def keep(self, place: Place, body: bytes, page: Page) -> Page:
        """Remember a page that was read; the answer is equal to it, and may be another object."""
        seen = self._seen.get(place)
        if seen is None and len(self._seen) >= MOST_KEPT:
            self._seen.clear()
        known = seen.page if seen is not None and seen.page == page else self._shared(page)
        self._seen[place] = _Seen(hash(body), len(body), known)
        return known

    def _shared(self, page: Page) -> Page:
        if len(self._pages) >= MOST_KEPT:
            self._pages.clear()
        return self._pages.setdefault(page, page)
