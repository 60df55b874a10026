"""Upstreams that are the gateway itself: a request sent there would go round for ever."""

from __future__ import annotations

import socket

from llmgw.config_file.addresses import format_listen, reaches
from llmgw.config_file.faults import Report
from llmgw.config_file.upstreams import Placed, Upstreams
from llmgw.core.config import GatewayConfig, Listen, Upstream


def refuse_loops(gateway: GatewayConfig, upstreams: Upstreams, report: Report) -> None:
    listens = (*gateway.listen, *gateway.metrics_listen)
    if not upstreams.placed or not listens:
        return
    own_names = frozenset({socket.gethostname().lower()})
    for one in upstreams.placed:
        if listen := _reached(one, listens, own_names):
            report.fault(
                f"{one.place}.url",
                f"{one.upstream.url} is this gateway itself, which listens on "
                f"{format_listen(listen)}",
                "gateway.listen takes another port",
            )


def refuse_shared_listens(gateway: GatewayConfig, report: Report) -> None:
    """Sockets share a port without an error, and clients would then meet either by chance."""
    if not gateway.listen:
        report.fault("gateway.listen", "must name at least one address")
    for one in gateway.metrics_listen:
        if one in gateway.listen and (one.path is not None or one.port):
            report.fault(
                "gateway.metrics_listen", f"{format_listen(one)} is an address of gateway.listen"
            )


def _reached(
    one: Placed[Upstream], listens: tuple[Listen, ...], own_names: frozenset[str]
) -> Listen | None:
    url = one.upstream.url
    return next((ear for ear in listens if reaches(ear, url.host, url.port, own_names)), None)
