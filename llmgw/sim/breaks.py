"""Faults that leave no part of an answer, and the two ways to lose a connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final

from aiohttp import web

from llmgw.sim import answers
from llmgw.sim.answers import Refused
from llmgw.sim.faults import Fault, FaultKind

HANG: Final = 3600.0


async def fail_before(request: web.Request, fault: Fault) -> None:
    """Do what the fault says, unless it is one that strikes inside an answer."""
    match fault.kind:
        case FaultKind.HANG:
            await asyncio.sleep(HANG)
        case FaultKind.RESET:
            await reset(request)
        case FaultKind.STATUS:
            raise Refused(fault.status, answers.engine_died(fault.status))
        case FaultKind.MODEL_NOT_FOUND:
            raise Refused(404, answers.coded_model_not_found())
        case FaultKind.ENGINE_NOT_FOUND:
            raise Refused(404, answers.unknown_model(request.path))


async def reset(request: web.Request) -> None:
    """Close the connection so that the other side reads a reset and not an end."""
    if request.transport is None:
        return
    connection = request.transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await cut(request)


async def cut(request: web.Request) -> None:
    """Close the connection at once, and with it this handler."""
    if request.transport is not None:
        request.transport.abort()
    await asyncio.sleep(HANG)  # cancelled as soon as the loop has seen the close
