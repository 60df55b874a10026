"""Who an operator is: a signed cookie on the pages, a bearer token on the API."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web

from llmgw.core.admin_password import (
    KEY_BYTES,
    SALT_BYTES,
    MalformedHash,
    PasswordHash,
    nobodys_hash,
    parse_hash,
)
from llmgw.core.admin_session import (
    LIFETIME,
    form_token,
    is_form_token,
    operator_of_token,
    sign_in,
    signed_in,
)
from llmgw.core.config import AdminUser
from llmgw.core.errors import AuthenticationFailed, GatewayError
from llmgw.web.admin.attempts import Attempts
from llmgw.web.admin.ports import Gateway
from llmgw.web.incoming import Incoming

COOKIE: Final = "llmgw_admin"
PATH: Final = "/admin"
AT_ONCE: Final = 2  # hashes: each takes 16 MiB and a tenth of a second
BEARER: Final = "bearer"
CHALLENGE: Final = (("www-authenticate", 'Bearer realm="llmgw admin"'),)


class TooManyAttempts(GatewayError):
    status = 429
    code = "too_many_attempts"
    type = "invalid_request_error"

    def __init__(self, wait: float) -> None:
        self.wait = max(1, round(wait))
        super().__init__(
            "too many attempts failed; wait before the next one",
            headers=(("retry-after", str(self.wait)),),
        )


class Operators:
    """Reads the users from the configuration each time: a reload counts at once."""

    def __init__(
        self,
        gateway: Gateway,
        secret: bytes,
        *,
        wall: Callable[[], float] = time.time,
        attempts: Attempts | None = None,
    ) -> None:
        self._gateway = gateway
        self._secret = secret
        self._wall = wall
        self._attempts = attempts or Attempts()
        self._hashing = asyncio.Semaphore(AT_ONCE)
        self._nobody = nobodys_hash(
            secrets.token_bytes(SALT_BYTES), secrets.token_bytes(KEY_BYTES)
        )

    @property
    def are_any(self) -> bool:
        return bool(self._gateway.config.admin.users)

    def of_cookie(self, incoming: Incoming) -> AdminUser | None:
        cookie = incoming.request.cookies.get(COOKIE, "")
        users = self._gateway.config.admin.users
        return signed_in(self._secret, users, cookie, now=self._wall())

    def of_api(self, incoming: Incoming) -> AdminUser:
        """By a bearer token, else by the cookie. Raises `AuthenticationFailed`."""
        token = _bearer(incoming)
        found = self._of_token(incoming, token) if token else self.of_cookie(incoming)
        if found is None:
            raise AuthenticationFailed(
                "sign in, or send a bearer token of an operator",
                code="invalid_admin_token",
                headers=CHALLENGE,
            )
        return found

    async def of_password(self, incoming: Incoming, name: str, password: str) -> AdminUser | None:
        """Raises `TooManyAttempts`. A name that does not exist takes as long as one that does."""
        address = address_of(incoming)
        if (wait := self._attempts.begin(address, name)) is not None:
            raise TooManyAttempts(wait)
        user = next((one for one in self._gateway.config.admin.users if one.name == name), None)
        known = _hash_of(user)
        async with self._hashing:
            matches = await asyncio.to_thread((known or self._nobody).matches, password)
        if user is None or known is None or not matches:
            return None
        self._attempts.succeeded(address, name)
        return user

    def admit(self, response: web.StreamResponse, user: AdminUser, incoming: Incoming) -> None:
        response.set_cookie(
            COOKIE,
            sign_in(self._secret, user, now=self._wall()),
            path=PATH,
            max_age=int(LIFETIME),
            httponly=True,
            samesite="Strict",
            secure=is_secure(incoming),
        )

    def dismiss(self, response: web.StreamResponse) -> None:
        response.del_cookie(COOKIE, path=PATH, httponly=True, samesite="Strict")

    def form_token(self, purpose: str, nonce: str) -> str:
        return form_token(self._secret, purpose, nonce)

    def is_form_token(self, purpose: str, nonce: str, token: str) -> bool:
        return is_form_token(self._secret, purpose, nonce, token)

    def _of_token(self, incoming: Incoming, token: str) -> AdminUser | None:
        """Only wrong ones count as attempts: a token is random, so that it can't be guessed, and
        whoever shares an address with a guesser must not be locked out.
        """
        found = operator_of_token(self._gateway.config.admin.users, token)
        if found is None:
            wait = self._attempts.begin(address_of(incoming), "bearer token")
            if wait is not None:
                raise TooManyAttempts(wait)
        return found


def address_of(incoming: Incoming) -> str:
    """Of the peer: what a header says of the client's address anybody can write."""
    return incoming.request.remote or "local"


def is_secure(incoming: Incoming) -> bool:
    """Whether the browser speaks https. A proxy says so; whoever lies about it only keeps their
    own cookie from coming back.
    """
    forwarded = incoming.header("X-Forwarded-Proto") or incoming.request.scheme
    return forwarded.split(",")[0].strip().lower() == "https"


def _bearer(incoming: Incoming) -> str | None:
    scheme, _, token = (incoming.header("Authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == BEARER and token.strip() else None


def _hash_of(user: AdminUser | None) -> PasswordHash | None:
    if user is None or user.password is None:
        return None
    try:
        return parse_hash(user.password)
    except MalformedHash:
        return None
