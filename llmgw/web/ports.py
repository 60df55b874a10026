"""What the web floor asks of the gateway. The real one is `llmgw/runtime/gateway.py`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

from llmgw.core.catalog import Catalog
from llmgw.core.config import Config
from llmgw.core.fleet import Fleet
from llmgw.core.policy import KeyRing, Principal
from llmgw.core.types import PoolName, UpstreamName
from llmgw.core.wire import Call
from llmgw.runtime.journey import Journey
from llmgw.runtime.ports import Downstream
from llmgw.runtime.standing import ConfigStatus


class Registry(Protocol):
    def fleet(self) -> Fleet: ...


class Drains(Protocol):
    def draining(self) -> AbstractSet[UpstreamName]:
        """Nodes that operators have taken out, beside those of the configuration."""


class Gateway(Protocol):
    """One snapshot of everything is read per request: a reload replaces the values whole."""

    @property
    def config(self) -> Config: ...

    @property
    def keyring(self) -> KeyRing: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def board(self) -> Drains: ...

    @property
    def instance(self) -> str:
        """The id that stands in `via`."""

    @property
    def ready(self) -> bool:
        """Bound, migrated, and through the first listing round."""

    @property
    def draining(self) -> bool: ...

    @property
    def database_state(self) -> str: ...

    @property
    def config_status(self) -> ConfigStatus: ...

    def new_request_id(self) -> str: ...

    def catalog(self, pool: PoolName) -> Catalog: ...

    async def serve(
        self,
        call: Call,
        principal: Principal,
        downstream: Downstream,
        *,
        journey: Journey | None = None,
    ) -> None: ...
