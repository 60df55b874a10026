"""How numbers and times are written on the pages."""

from __future__ import annotations

from datetime import UTC, datetime

from llmgw.core.types import RouteClass

LANE_NAMES = {
    RouteClass.HTTP: "HTTP",
    RouteClass.SSE: "SSE",
    RouteClass.WEBSOCKET: "WebSocket",
    RouteClass.COMPACT: "compact",
    RouteClass.FILE: "files",
    RouteClass.AUDIO: "audio",
}


def lane_name(lane: RouteClass) -> str:
    return LANE_NAMES[lane]


def clock_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def count(number: int) -> str:
    """With thin spaces between thousands; from ten million on in millions."""
    if number >= 10_000_000:
        return f"{number / 1e6:.1f} M"
    return f"{number:,}".replace(",", "\u2009")


def percent(share: float) -> str:
    """What is more than nothing is never shown as nothing, what is not all never as all."""
    if 0 < share <= 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share * 100:.0f} %"


def span(seconds: float) -> str:
    """A duration with two or three digits that matter."""
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = int(seconds + 0.5)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
