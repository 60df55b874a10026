"""The one message of a provider that may reach its client, without what identifies anybody."""

from __future__ import annotations

import re

MESSAGE_AT_MOST = 1000
TOKEN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\[\]:/-]{0,99}")

EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://\S+", re.IGNORECASE)
BEARER = re.compile(r"\b(bearer|basic|token|key)\s*[:=]?\s+[\w.~+/-]{16,}=*", re.IGNORECASE)
PREFIXED = re.compile(  # sk-..., org-..., acct_..., and the same with a * for what was cut out
    r"\b(?:sk|pk|rk|ak|gsk|xai|key|api|org|organization|proj|project|acct|account|acc|user|usr"
    r"|team|tenant|workspace|wrkspc|cus|sub)[-_](?=[\w*-]*[\d*A-Z])[\w*-]{4,}(?:\.[\w*-]+)*"
)
NAMED = re.compile(  # "organization 8f3a...", "account id: 1234"
    r"\b(org(?:anization|anisation)?|project|account|tenant|workspace|team|user)"
    r"(\s+id)?(\s*[:=]\s*|\s+)[`'\"]?(?=[\w-]*\d)[\w-]{3,}",
    re.IGNORECASE,
)
UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
OPAQUE = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{24,}")  # a long word of both kinds
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

REPLACEMENTS = (
    (CONTROL, " "),
    (EMAIL, "[email]"),
    (URL, "[url]"),
    (BEARER, r"\1 [redacted]"),
    (PREFIXED, "[redacted]"),
    (NAMED, r"\1\2\3[redacted]"),
    (UUID, "[redacted]"),
    (OPAQUE, "[redacted]"),
)


def sanitize_message(message: str) -> str:
    """Cut, and with anything like a key, an e-mail address or an account's id replaced.

    A little more than is shown is looked at: an id that begins inside the cut and ends behind
    it is still known as one.
    """
    text = message[: 2 * MESSAGE_AT_MOST]
    for pattern, replacement in REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text[:MESSAGE_AT_MOST]


def sanitize_token(value: str | None) -> str | None:
    """A `code`, `type` or `param` as it came, if it looks like an identifier; else None."""
    if value is None or not TOKEN.fullmatch(value):
        return None
    return value if sanitize_message(value) == value else None
