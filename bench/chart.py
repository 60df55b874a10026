"""A bar chart of medians as SVG: one group for each workload, one bar for each gateway."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

COLOURS = ("#8b949e", "#bf8700", "#8250df", "#1f6feb", "#2da44e")
LEFT, WIDTH, BAR, GAP = 240, 760, 16, 26


def write_chart(path: Path, lines: list[dict[str, Any]], says: dict[str, str]) -> None:
    """Each group has a scale of its own: what counts is who takes more than whom."""
    peers = list(dict.fromkeys(line["peer"] for line in lines))
    parts, y = [], 40
    for name in dict.fromkeys(line["workload"] for line in lines):
        group = [line for line in lines if line["workload"] == name]
        most = max(line["cpu_us"] for line in group)
        parts.append(_text(10, y + 12, f"{name}: {says.get(name, '')}", "bold"))
        y += 20
        for line in group:
            colour = COLOURS[peers.index(line["peer"]) % len(COLOURS)]
            length = (WIDTH - LEFT - 90) * line["cpu_us"] / most
            parts.append(_text(30, y + 12, line["peer"]))
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" '
                f'fill="{colour}"/>'
            )
            parts.append(_text(LEFT + length + 6, y + 12, f"{line['cpu_us']:.1f}"))
            y += BAR
        y += GAP
    title = _text(10, 20, "CPU time of the gateway, microseconds a request or event", "bold")
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{title}\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _text(x: float, y: float, words: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}">{escape(words)}</text>'
