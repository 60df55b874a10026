"""Who a client is, and what its key may do."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from hashlib import sha256
from typing import NamedTuple

from llmgw.core.config import KeyConfig
from llmgw.core.errors import AuthenticationFailed, PermissionDenied
from llmgw.core.types import CLUSTER, Headers, KeyId, PoolName
from llmgw.core.wire import Call

KEY_ID_LENGTH = 16
TOKEN_HEADERS = ("x-api-key", "api-key")  # looked at after Authorization, in this order
CARRIERS = frozenset(("authorization", *TOKEN_HEADERS))


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """Which models a key may name: exactly, or by glob; case counts."""

    exact: frozenset[str] = frozenset()
    globs: re.Pattern[str] | None = None
    everything: bool = False

    def allows(self, model: str) -> bool:
        if self.everything or model in self.exact:
            return True
        return self.globs is not None and self.globs.match(model) is not None


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


class Admission(NamedTuple):
    principal: Principal
    expires_at: float | None  # unix time


_FREE = Admission(OPEN, None)


@dataclass(frozen=True, slots=True)
class _Key:
    digest: str
    expires_at: float | None
    principal: Principal


@dataclass(frozen=True, slots=True)
class KeyRing:
    """All keys by digest. Made whole, so that a new or revoked key is one assignment."""

    keys: Mapping[str, _Key]
    is_open: bool = False

    @classmethod
    def from_keys(cls, keys: Iterable[KeyConfig]) -> KeyRing:
        """Without any key this ring is closed, not open. The first of a digest counts."""
        ring: dict[str, _Key] = {}
        for one in keys:
            ring.setdefault(one.digest, _Key(one.digest, one.expires_at, _principal(one)))
        return cls(ring)

    @classmethod
    def open(cls) -> KeyRing:
        """Where there is neither an [auth] section nor a keys file: anybody, whatever is sent."""
        return cls({}, is_open=True)

    def find(self, wanted: str) -> Principal | None:
        """By a key's name or id, or by the key itself: for operators, not for clients."""
        own = self.keys.get(sha256(wanted.encode("utf-8", "surrogateescape")).hexdigest())
        if own is not None:
            return own.principal
        found = (one.principal for one in self.keys.values())
        return next((one for one in found if wanted in (one.name, one.key)), None)

    def authenticate(self, token: str | None, *, now: float) -> Principal:
        """`now` is unix time. Raises `AuthenticationFailed`.

        What is looked up is a digest, so neither the look-up's time nor the comparison's tells
        anything of a key.
        """
        return self.admission(token, now=now).principal

    def admission(self, token: str | None, *, now: float) -> Admission:
        """The same, for whoever remembers it: it holds for this ring and up to its end."""
        if self.is_open:
            return _FREE
        if token is None:
            raise AuthenticationFailed("no API key given")
        digest = sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
        key = self.keys.get(digest)
        if key is None or not hmac.compare_digest(key.digest, digest):
            raise AuthenticationFailed("unknown API key")
        if key.expires_at is not None and now >= key.expires_at:
            raise AuthenticationFailed("the API key has expired")
        return Admission(key.principal, key.expires_at)


def build_policy(patterns: Iterable[str]) -> ModelPolicy:
    names = frozenset(patterns)
    globs = sorted(name for name in names if any(mark in name for mark in "*?["))
    return ModelPolicy(
        exact=names.difference(globs),
        globs=re.compile("|".join(map(translate, globs))) if globs else None,
        everything="*" in names,
    )


def token_of(headers: Headers) -> str | None:
    """The token a client sends, by whichever of the three headers."""
    named: dict[str, str] = {}
    for name, value in headers:
        if name in CARRIERS and value:
            named.setdefault(name, value)
    scheme, _, token = named.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return next((named[name].strip() for name in TOKEN_HEADERS if name in named), None)


def admit(principal: Principal, call: Call) -> None:
    """Raises `PermissionDenied`."""
    if not principal.models.allows(call.model):
        raise PermissionDenied("this key may not use this model", param="model")


def _principal(key: KeyConfig) -> Principal:
    return Principal(
        key=KeyId(key.digest[:KEY_ID_LENGTH]),
        name=key.name,
        pool=key.pool,
        models=build_policy(key.models),
        explain=key.explain,
        max_in_flight=key.max_in_flight,
        labels=key.labels,
    )
