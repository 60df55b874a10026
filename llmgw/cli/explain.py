"""`llmgw explain`: where a request would go, and why the other assignments are out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from llmgw.cli.table import table
from llmgw.core.eligibility import Exclusion
from llmgw.daemon.control import ControlFailed, ask
from llmgw.daemon.places import find_running

COLUMNS = ("", "assignment", "provenance", "listed", "load", "circuit", "notes")
NOTES = ("degraded", "demoted", "untried", "probe")
MEANINGS: Final[Mapping[str, str]] = {
    Exclusion.RING: "the model is not of its ring",
    Exclusion.MISSING: "its list does not have the model",
    Exclusion.EMPTY: "its list is empty",
    Exclusion.EXPIRED: "its listings fail",
    Exclusion.DEAD: "its health checks fail",
    Exclusion.SKIPPED: "it has just refused a connection",
    Exclusion.CIRCUIT_OPEN: "it has just failed for this model",
    Exclusion.CAPABILITY: "it does not have the route",
    Exclusion.DRAINING: "it gets no new work",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="NAME", help="as a client names it")
    parser.add_argument(
        "--key", metavar="NAME|ID|-", help="whose request; - reads the key from standard input"
    )
    parser.add_argument("--route", metavar="PATH", help="default: /v1/chat/completions")
    parser.add_argument("--stream", action="store_true", help="as an event stream")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Exit status 1 if no gateway answers, or if nobody could serve the request."""
    key = sys.stdin.readline().strip() if arguments.key == "-" else arguments.key
    given = {"key": key, "route": arguments.route}
    asked = {name: value for name, value in given.items() if value is not None}
    try:
        found = ask(
            find_running(os.environ).control,
            "explain",
            model=arguments.model,
            stream=arguments.stream,
            **asked,
        )
    except ControlFailed as error:
        print(f"llmgw explain: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2) if arguments.json else "\n".join(_lines(found)))
    return 0 if found.get("allowed") and found.get("plan") else 1


def _lines(found: dict[str, object]) -> Iterator[str]:
    yield (
        f"{found.get('model')} on {found.get('route')} ({found.get('route_class')}), "
        f"pool {found.get('pool')}, {_whose(found)}"
    )
    if not found.get("allowed"):
        yield "the key may not use this model"
    seen = {str(one.get("assignment")): _seen(one) for one in _tables(found, "standing")}
    plan = [_tried(place, one) for place, one in enumerate(_tables(found, "plan"), 1)]
    beyond = found.get("beyond_plan")
    names = beyond if isinstance(beyond, list) else []
    rest = [("-", str(name), "", "eligible, beyond plan_size") for name in names]
    out = [
        ("x", str(one.get("assignment")), "", _excluded(str(one.get("reason"))))
        for one in _tables(found, "excluded")
    ]
    if rows := [*plan, *rest, *out]:
        nothing = ("", "", "")
        yield from table(
            [COLUMNS, *((*one[:3], *seen.get(one[1], nothing), one[3]) for one in rows)]
        )
    refusal = found.get("refusal")
    if isinstance(refusal, dict):
        yield f"refused: {refusal['status']} {refusal['code']}: {refusal['message']}"
        if nearest := found.get("nearest"):
            yield f'did you mean "{nearest}"?'


def _whose(found: dict[str, object]) -> str:
    return "open to all, whatever the key" if found.get("is_open") else f"key {found.get('key')}"


def _excluded(reason: str) -> str:
    meaning = MEANINGS.get(reason)
    return f"excluded: {reason} ({meaning})" if meaning else f"excluded: {reason}"


def _tried(place: int, one: dict[str, object]) -> tuple[str, ...]:
    notes = ", ".join(note for note in NOTES if one.get(note))
    return str(place), str(one.get("assignment")), str(one.get("provenance") or ""), notes


def _seen(one: dict[str, object]) -> tuple[str, str, str]:
    circuit = one.get("circuit")
    told = circuit if isinstance(circuit, dict) else {}
    state, due_in = str(told.get("state", "")), told.get("due_in")
    age, load = one.get("listed_ago"), one.get("load")
    return (
        f"{age:.0f}s ago" if isinstance(age, float) else "never",
        f"{load:g}" if isinstance(load, float | int) else "",
        f"{state} for {due_in:.0f}s" if isinstance(due_in, float) else state,
    )


def _tables(found: dict[str, object], name: str) -> list[dict[str, object]]:
    rows = found.get(name)
    return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []
