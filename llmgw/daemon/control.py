"""`control.sock`: how the commands of this program speak to the gateway that runs.

One line of JSON in, one line out, then the connection ends. The operations are those that are
handed in, each named as its command, and no others.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from llmgw.daemon.places import ELSEWHERE
from llmgw.daemon.sockets import UNIX_MODE

MAX_LINE = 64 * 1024
ANSWER_WITHIN = 5.0

Json = Mapping[str, object]
Operation = Callable[[Json], Awaitable[Json]]


class ControlFailed(Exception):
    """The gateway can't be asked, or it refused."""


class OperationRefused(Exception):
    """What was asked for can't be done; the text is for whoever asked."""


class ControlServer:
    """Answers on a unix socket; only the service's user and group may open it."""

    def __init__(self, path: Path, operations: Mapping[str, Operation]) -> None:
        self._path = path
        self._operations = operations
        self._server: asyncio.Server | None = None
        self._inode = -1

    async def start(self) -> None:
        """Take the path over, also from a predecessor that is still draining."""
        sock = _listen(self._path)
        self._inode = self._path.stat().st_ino
        self._server = await asyncio.start_unix_server(self._answer, sock=sock, limit=MAX_LINE)

    def close(self) -> None:
        """The path is left alone if a successor has put its own socket there."""
        if self._server is None:
            return
        self._server.close()
        with suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                line = await reader.readline()
                answer = await self._result(line)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (TimeoutError, ConnectionError, ValueError):
            return  # a caller that is silent, gone, or writes without end
        finally:
            writer.close()

    async def _result(self, line: bytes) -> Json:
        try:
            asked = json.loads(line)
        except (ValueError, RecursionError):
            return {"error": "not a line of JSON"}
        name = asked.get("op") if isinstance(asked, dict) else None
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None:
            return {"error": f"no such operation; there are: {', '.join(self._operations)}"}
        try:
            return await operation(asked)
        except OperationRefused as refused:
            return {"error": str(refused)}


def ask(path: Path, operation: str, **arguments: object) -> dict[str, object]:
    """The client's side, for commands. Raises `ControlFailed`."""
    line = json.dumps({"op": operation, **arguments}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(ANSWER_WITHIN)
            caller.connect(str(path))
            caller.sendall(line)
            with caller.makefile("rb") as answer:
                found = json.loads(answer.readline())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ControlFailed(f"no gateway answers at {path}: {reason} ({ELSEWHERE})") from error
    except ValueError as error:
        raise ControlFailed(f"{path} does not answer as a gateway does") from error
    if "error" in found:
        raise ControlFailed(str(found["error"]))
    return dict(found)


def _listen(path: Path) -> socket.socket:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(fresh))
        fresh.chmod(UNIX_MODE)
        sock.listen()
        sock.setblocking(False)
        fresh.replace(path)
    except OSError:
        sock.close()
        raise
    return sock
