"""Which model a client may have meant.

Clients choose the name, and every refusal asks: so the work is bounded. Of a long list the
beginning is looked at, and only the few that share most pairs of letters are compared in full.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from heapq import nlargest
from itertools import islice, pairwise
from typing import Final

LONGEST: Final = 200  # characters, of the client's name and of those it is compared with
LOOK_AT: Final = 500
COMPARE: Final = 4


def nearest_model(model: str, known: Collection[str]) -> str | None:
    """None where none is near, and for one that is known itself."""
    if not model or len(model) > LONGEST or model in known:
        return None
    pairs = _pairs(model)
    likely = nlargest(COMPARE, islice(known, LOOK_AT), key=lambda one: len(pairs & _pairs(one)))
    return next(iter(get_close_matches(model, (one[:LONGEST] for one in likely), n=1)), None)


def _pairs(text: str) -> set[tuple[str, str]]:
    return set(pairwise(text[:LONGEST]))
