"""Who is signed in: a cookie that carries a name and an end, and a signature over both.

The signature also covers the operator's password hash: a changed password ends every session.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256

from llmgw.core.config import AdminUser

LIFETIME = 12 * 3600.0
LONGEST = 4096


def sign_in(secret: bytes, user: AdminUser, *, now: float) -> str:
    """The cookie's value."""
    name = urlsafe_b64encode(user.name.encode()).decode().rstrip("=")
    ends = int(now + LIFETIME)
    return f"{name}.{ends}.{_session_tag(secret, user, ends)}"


def signed_in(
    secret: bytes, users: Iterable[AdminUser], cookie: str, *, now: float
) -> AdminUser | None:
    """The operator of a cookie that is whole, in time, and of somebody who still signs in so."""
    parts = cookie.split(".") if len(cookie) <= LONGEST and cookie.isascii() else ()
    if len(parts) != 3:
        return None
    encoded, ends, tag = parts
    user = next((one for one in users if one.name == _decoded(encoded)), None)
    if user is None or user.password is None or not ends.isdigit() or len(ends) > 15:
        return None
    if not hmac.compare_digest(tag, _session_tag(secret, user, int(ends))):
        return None
    return user if now < int(ends) else None


def form_token(secret: bytes, purpose: str, nonce: str) -> str:
    """What a form of ours carries, to show that it was ours: bound to a cookie's value."""
    return _tag(secret, purpose, nonce)


def is_form_token(secret: bytes, purpose: str, nonce: str, token: str) -> bool:
    if not nonce or not token.isascii():
        return False
    return hmac.compare_digest(token, _tag(secret, purpose, nonce))


def operator_of_token(users: Iterable[AdminUser], token: str) -> AdminUser | None:
    """By a bearer token. What is compared are digests, so no time tells anything of a token."""
    digest = sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
    found = None
    for one in users:
        if one.token_digest is not None and hmac.compare_digest(one.token_digest, digest):
            found = one
    return found


def _session_tag(secret: bytes, user: AdminUser, ends: int) -> str:
    return _tag(secret, "session", user.name, str(ends), user.password or "")


def _tag(secret: bytes, *words: str) -> str:
    """The lengths are signed too: no two lists of words have one text."""
    text = "".join(f"{len(word)}:{word}" for word in words)
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def _decoded(encoded: str) -> str | None:
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return None
