"""Who a client is, and what its key may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmgw.core.config import KeyConfig
from llmgw.core.types import CLUSTER, Headers, KeyId, PoolName
from llmgw.core.wire import Call


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """Exact names and globs; case counts."""

    exact: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    everything: bool = False

    def allows(self, model: str) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Principal:
    """A client, as its key makes it known; `key` None: the gateway is open."""

    key: KeyId | None
    name: str
    pool: PoolName
    models: ModelPolicy
    explain: bool = False
    max_in_flight: int | None = None
    labels: tuple[tuple[str, str], ...] = ()


OPEN = Principal(None, "open", CLUSTER, ModelPolicy(everything=True))


class KeyRing:
    """All keys by digest; the open ring takes anybody."""

    @classmethod
    def from_keys(cls, keys: Iterable[KeyConfig]) -> KeyRing:
        raise NotImplementedError

    @classmethod
    def open(cls) -> KeyRing:
        raise NotImplementedError

    def authenticate(self, token: str | None, *, now: float) -> Principal:
        """`now` is unix time. Raises `AuthenticationFailed`."""
        raise NotImplementedError


def token_of(headers: Headers) -> str | None:
    raise NotImplementedError


def admit(principal: Principal, call: Call) -> None:
    """Raises `PermissionDenied`."""
    raise NotImplementedError
