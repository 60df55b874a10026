"""Operators' passwords: `scrypt$N$r$p$SALT$KEY`, salt and key in base64 (RFC 7914)."""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import scrypt

COST = (2**14, 8, 5)  # N, r, p: OWASP's for 16 MiB of memory
MOST_MEMORY = 256 * 1024 * 1024  # a hash that wants more would be a denial of service
SALT_BYTES = 16
KEY_BYTES = 32
FORM = re.compile(
    r"scrypt\$(\d{1,8})\$(\d{1,3})\$(\d{1,3})\$([A-Za-z0-9+/]{20,88}={0,2})\$([A-Za-z0-9+/]{43}=)",
    re.ASCII,
)


class MalformedHash(ValueError):
    """It is not in the form above; the text is never quoted."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    n: int
    r: int
    p: int
    salt: bytes
    key: bytes

    def __str__(self) -> str:
        salt, key = (b64encode(one).decode() for one in (self.salt, self.key))
        return f"scrypt${self.n}${self.r}${self.p}${salt}${key}"

    def matches(self, password: str) -> bool:
        """Takes a tenth of a second of a processor: not for the event loop."""
        return hmac.compare_digest(self.key, _derive(password, self.n, self.r, self.p, self.salt))


def hash_password(password: str, salt: bytes) -> PasswordHash:
    return PasswordHash(*COST, salt, _derive(password, *COST, salt))


def nobodys_hash(salt: bytes, key: bytes) -> PasswordHash:
    """Random bytes: it matches nothing, and takes as long to compare as a real one."""
    return PasswordHash(*COST, salt, key)


def parse_hash(text: str) -> PasswordHash:
    """Raises `MalformedHash`."""
    found = FORM.fullmatch(text)
    if found is None:
        raise MalformedHash
    n, r, p = (int(number) for number in found.groups()[:3])
    if not _is_possible(n, r, p):
        raise MalformedHash
    try:
        salt, key = (b64decode(one, validate=True) for one in found.groups()[3:])
    except ValueError:
        raise MalformedHash from None
    return PasswordHash(n, r, p, salt, key)


def _is_possible(n: int, r: int, p: int) -> bool:
    is_power_of_two = n > 1 and n & (n - 1) == 0
    return is_power_of_two and r > 0 and 0 < p <= 64 and 128 * r * (n + p) <= MOST_MEMORY


def _derive(password: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    data = password.encode("utf-8", "surrogatepass")
    return scrypt(data, salt=salt, n=n, r=r, p=p, maxmem=2 * MOST_MEMORY, dklen=KEY_BYTES)
