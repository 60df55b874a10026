"""What a row is found by: a hash, where the parts are long, secret, or a client's."""

from __future__ import annotations

import json
from hashlib import sha256

LONGEST_TEXT = 512


def digest(*parts: str | None) -> str:
    """SHA-256 of the parts, kept apart: ("a", "bc") is another one than ("ab", "c")."""
    return sha256(json.dumps(parts).encode()).hexdigest()


def storable(text: str) -> str:
    """As both databases can keep it: bounded, without NUL and without half a character."""
    text = text[:LONGEST_TEXT].replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode()
