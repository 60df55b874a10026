"""What one simulated node is, does and has done."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final
from uuid import uuid4

from llmgw.sim.faults import FaultKind, Faults

KEPT: Final = 1000
VERSION: Final = "0.32.0"  # of the vLLM whose answers are imitated


@dataclass(frozen=True, slots=True)
class Settings:
    """How a node answers: times in seconds, 0 tokens a second is as fast as it can."""

    name: str = "sim"
    models: tuple[str, ...] = ("sim",)
    ttft: float = 0.0
    tps: float = 0.0
    tokens: int = 20
    max_model_len: int = 8192
    websocket: bool = False  # providers have it; engines answer the handshake with 403
    stores: bool = True  # it keeps responses, so that a later request may continue on one


@dataclass(slots=True)
class Seen:
    """One inference request that arrived, and how it ended (`running` until then)."""

    path: str
    model: str | None = None
    stream: bool = False
    request_id: str | None = None
    outcome: str = "running"  # served, cancelled, a fault's name, or the error status
    tokens: int = 0

    def end(self, outcome: str) -> None:
        """The first end counts: a fault closes the connection, which then looks cancelled."""
        if self.outcome == "running":
            self.outcome = outcome

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class SimState:
    """The live half of a node; everything a handler shares is here."""

    settings: Settings
    faults: Faults = field(default_factory=Faults)
    seen: deque[Seen] = field(default_factory=lambda: deque(maxlen=KEPT))
    running: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    responses: OrderedDict[str, dict[str, object]] = field(default_factory=OrderedDict)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are loaded now."""
        gone = self.faults.has
        return tuple(one for one in self.settings.models if not gone(FaultKind.UNLOAD, one))

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{self.settings.name}-{uuid4().hex[:16]}"

    def keep_response(self, response: dict[str, object]) -> None:
        """Remember a response for `GET /v1/responses/{id}`; the oldest makes room."""
        self.responses[str(response["id"])] = response
        while len(self.responses) > KEPT:
            self.responses.popitem(last=False)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count a request as running, however it ends."""
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


def now() -> int:
    """Unix time in whole seconds, as `created` carries it."""
    return int(time.time())


def exposition(state: SimState) -> str:
    """`/metrics` in vLLM's names."""
    lines: list[str] = []
    for name, kind, value in _gauges(state):
        lines.append(f"# TYPE vllm:{name} {kind}")
        lines += [
            f'vllm:{name}{{engine="0",model_name="{_quoted(model)}"}} {value}'
            for model in state.settings.models[:1]  # an engine reports its first served name
        ]
    return "\n".join(lines) + "\n"


def _gauges(state: SimState) -> tuple[tuple[str, str, float], ...]:
    context = state.settings.max_model_len
    return (
        ("num_requests_running", "gauge", float(state.running)),
        ("num_requests_waiting", "gauge", 0.0),
        (
            "kv_cache_usage_perc",
            "gauge",
            min(1.0, state.running * state.settings.tokens / context),
        ),
        ("prompt_tokens_total", "counter", float(state.prompt_tokens)),
        ("generation_tokens_total", "counter", float(state.generation_tokens)),
        ("num_preemptions_total", "counter", 0.0),
        ("prefix_cache_hits_total", "counter", 0.0),
        ("prefix_cache_queries_total", "counter", float(state.prompt_tokens)),
    )


def _quoted(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
