"""What the running gateway does for its own commands: one operation each, and no others."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from llmgw.core.errors import GatewayError
from llmgw.core.types import UpstreamName
from llmgw.daemon.control import Json, Operation, OperationRefused
from llmgw.daemon.house import House
from llmgw.runtime.explain import explain, parse_question
from llmgw.store.errors import StoreError
from llmgw.web.health import health_document

LONGEST_DRAIN = 366 * 86400  # for a longer one there is `drain = true` in the configuration


class Operations:
    """Carries them out on a house."""

    def __init__(self, house: House) -> None:
        self._house = house

    def by_name(self) -> Mapping[str, Operation]:
        return {
            "status": self.status,
            "explain": self.explain,
            "drain": self.drain,
            "undrain": self.undrain,
        }

    async def status(self, _: Json) -> Json:
        gateway = self._house.gateway
        state = "draining" if gateway.draining else "ready" if gateway.ready else "starting"
        document = health_document(gateway, now=time.monotonic(), details=True)
        return {**document, "pid": os.getpid(), "state": state}

    async def explain(self, asked: Json) -> Json:
        try:
            return explain(self._house.gateway, parse_question(asked))
        except GatewayError as error:
            raise OperationRefused(error.message) from None

    async def drain(self, asked: Json) -> Json:
        """Every gateway of the database gives the upstream no new work."""
        node, lasting = self._upstream(asked), _lasting(asked.get("for_seconds"))
        drains = self._house.records.store.drains
        try:
            await drains.begin(node, now=time.time(), for_seconds=lasting)
        except StoreError as error:
            raise OperationRefused(str(error)) from None
        await self._house.gateway.shared.look()
        return {"node": node, "for_seconds": lasting}

    async def undrain(self, asked: Json) -> Json:
        node = self._upstream(asked)
        try:
            was_drained = await self._house.records.store.drains.end(node)
        except StoreError as error:
            raise OperationRefused(str(error)) from None
        await self._house.gateway.shared.look()
        return {"node": node, "was_drained": was_drained}

    def _upstream(self, asked: Json) -> UpstreamName:
        names = [one.name for one in self._house.gateway.config.upstreams]
        found = next((name for name in names if name == asked.get("node")), None)
        if found is None:
            raise OperationRefused(f"there is no such node; there are: {', '.join(names)}")
        return found


def _lasting(seconds: object) -> float | None:
    """None: until it is ended."""
    if seconds is None:
        return None
    if isinstance(seconds, (int, float)) and 0 <= seconds <= LONGEST_DRAIN:
        return float(seconds)
    raise OperationRefused(f"for_seconds must be a number from 0 to {LONGEST_DRAIN}")
