"""What a simulated node does wrong on purpose, as values, and the set that is switched on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final


class FaultKind(StrEnum):
    REFUSE = "refuse"  # the listener is closed and open connections are reset
    RESET = "reset"  # the connection is reset before any response byte
    HANG = "hang"  # no response head ever comes
    CUT = "cut"  # the connection ends inside the answer, after `after` tokens
    IN_BAND = "in_band"  # 200, then an error event after `after` tokens
    STATUS = "status"  # an answer with an error status
    MODEL_NOT_FOUND = "model_not_found"  # 404 with that code, as hosted providers say it
    ENGINE_NOT_FOUND = "engine_not_found"  # 404 as vLLM says it, the model still listed
    UNLOAD = "unload"  # a model is gone: from the list and for requests
    EMPTY_LIST = "empty_list"
    LIST_ERROR = "list_error"
    HANG_LIST = "hang_list"
    HEALTH_ERROR = "health_error"  # 503, as of an engine that died
    HANG_HEALTH = "hang_health"


INFERENCE: Final = frozenset(
    {
        FaultKind.RESET,
        FaultKind.HANG,
        FaultKind.CUT,
        FaultKind.IN_BAND,
        FaultKind.STATUS,
        FaultKind.MODEL_NOT_FOUND,
        FaultKind.ENGINE_NOT_FOUND,
    }
)
LISTING: Final = frozenset({FaultKind.EMPTY_LIST, FaultKind.LIST_ERROR, FaultKind.HANG_LIST})
HEALTH: Final = frozenset({FaultKind.HEALTH_ERROR, FaultKind.HANG_HEALTH})

_SHORTHANDS: Final = {
    "cut_before": {"fault": FaultKind.CUT, "after": 0},
    "cut_after": {"fault": FaultKind.CUT, "after": 1},
}


class InvalidFault(ValueError):
    """A fault that can't be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `times` is how often it still happens (None: until cleared)."""

    kind: FaultKind
    status: int = 500
    after: int = 0
    model: str | None = None  # None: whatever model is asked for
    times: int | None = None

    def to_json(self) -> dict[str, object]:
        rest = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "kind"}
        return {"fault": self.kind.value, **rest}


def parse_fault(text: str) -> Fault:
    """`KIND[,name=value...]`, as `status,status=503,times=2`."""
    kind, *settings = text.split(",")
    members: dict[str, object] = {"fault": kind}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InvalidFault(f"{setting!r} is not name=value")
        members[name] = (
            int(value) if name != "model" and value.isascii() and value.isdigit() else value
        )
    return build_fault(members)


def build_fault(members: Mapping[str, object]) -> Fault:
    """From the members of a JSON object: `fault`, and any of a fault's settings."""
    given = dict(members)
    name = str(given.pop("fault", "")).replace("-", "_")
    if short := _SHORTHANDS.get(name):
        given, name = {**short, **given}, str(short["fault"])
        given.pop("fault")
    if not name:
        raise InvalidFault(f'a "fault" must be named; known: {_known()}')
    if name not in set(FaultKind):
        raise InvalidFault(f"unknown fault {name!r}; known: {_known()}")
    model = given.pop("model", None)
    if not (model is None or isinstance(model, str)):
        raise InvalidFault("model must be a string")
    numbers = _integers(given)
    return Fault(
        FaultKind(name),
        status=numbers.get("status", 500),
        after=numbers.get("after", 0),
        model=model,
        times=numbers.get("times"),
    )


def _known() -> str:
    return ", ".join((*FaultKind, *_SHORTHANDS))


class Faults:
    """The faults that are switched on, in the order they were added."""

    def __init__(self) -> None:
        self._active: list[Fault] = []

    @property
    def active(self) -> tuple[Fault, ...]:
        return tuple(self._active)

    def add(self, fault: Fault) -> None:
        self._active.append(fault)

    def clear(self) -> None:
        self._active.clear()

    def has(self, kind: FaultKind, model: str | None = None) -> bool:
        return any(one.kind is kind and one.model in (None, model) for one in self._active)

    def take(self, kinds: frozenset[FaultKind], model: str | None = None) -> Fault | None:
        """The first fault of these kinds that is due; one of its `times` is used up."""
        for at, fault in enumerate(self._active):
            if fault.kind in kinds and fault.model in (None, model):
                self._use_up(at, fault)
                return fault
        return None

    def _use_up(self, at: int, fault: Fault) -> None:
        if fault.times is None:
            return
        if fault.times <= 1:
            del self._active[at]
        else:
            self._active[at] = replace(fault, times=fault.times - 1)


_RANGES: Final = {"status": (400, 599), "after": (0, 1_000_000), "times": (1, 1_000_000)}


def _integers(given: Mapping[str, object]) -> dict[str, int]:
    found = {}
    for name, value in given.items():
        if name not in _RANGES:
            raise InvalidFault(f"unknown setting {name!r}; known: {', '.join(_RANGES)}, model")
        if name == "times" and value is None:
            continue
        low, high = _RANGES[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InvalidFault(f"{name} must be a whole number from {low} to {high}")
        found[name] = value
    return found
