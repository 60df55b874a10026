from __future__ import annotations

import pytest

from llmgw.runtime.snapshot import build_snapshot
from llmgw.runtime.support import WebsocketSupport
from tests.builders import config, node


@pytest.mark.parametrize("configured", [True, False])
def test_what_is_configured_counts_whatever_was_seen(configured):
    upstream = node("a", websocket=configured)
    snapshot = build_snapshot(config(upstream))
    support = WebsocketSupport(lambda: snapshot)

    support.note(upstream, takes=not configured)

    assert support.of(upstream) is configured


def test_what_was_found_out_is_remembered_for_that_upstream():
    a, b = node("a"), node("b")
    snapshot = build_snapshot(config(a, b))
    support = WebsocketSupport(lambda: snapshot)
    assert support.of(a) is None

    support.note(a, takes=False)

    assert (support.of(a), support.of(b)) == (False, None)


def test_another_snapshot_has_to_find_out_anew():
    a = node("a")
    snapshots = [build_snapshot(config(a))]
    support = WebsocketSupport(lambda: snapshots[-1])
    support.note(a, takes=False)

    snapshots.append(build_snapshot(config(a)))

    assert support.of(a) is None
