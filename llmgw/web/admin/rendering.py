"""Templates into text. Jinja is loaded with the first page: a gateway without operators has no
use for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from llmgw import __version__
from llmgw.core.admin_spark import bars_of, spark_of
from llmgw.store.usage import PastAttempt
from llmgw.web.admin import words

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a page that may change while it is looked at. Equal values look the same."""

    name: str
    template: str
    value: object

    @property
    def id(self) -> str:
        """For the document: a name may hold whatever an upstream is called."""
        return f"part-{sha256(self.name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A rendered part, and by what it is recognized as the same."""

    id: str
    version: str
    html: str


def render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values)


def render_parts(parts: Sequence[Part]) -> list[Piece]:
    return [_piece(one) for one in parts]


def _spans(attempts: Sequence[PastAttempt]) -> list[tuple[float, float]]:
    return [(one.started, one.ended) for one in attempts]


def _piece(part: Part) -> Piece:
    text = render(part.template, value=part.value)
    return Piece(part.id, sha256(text.encode()).hexdigest()[:12], text)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("llmgw.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clock_time": words.clock_time,
        "iso_time": words.iso_time,
        "count": words.count,
        "percent": words.percent,
        "span": words.span,
        "lane": words.lane_name,
        "spans": _spans,
    }
    environment.globals |= {"version": __version__, "spark_of": spark_of, "bars_of": bars_of}
    return environment
