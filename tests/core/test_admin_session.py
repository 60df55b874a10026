"""Signed cookies, form tokens and bearer tokens."""

from base64 import urlsafe_b64encode
from dataclasses import replace
from hashlib import sha256

import pytest

from llmgw.core.admin_session import (
    LIFETIME,
    form_token,
    is_form_token,
    operator_of_token,
    sign_in,
    signed_in,
)
from llmgw.core.config import AdminUser

SECRET, NOW = b"s" * 32, 1000.0
ADA = AdminUser("ada", password="scrypt$1", token_digest=sha256(b"t-ada").hexdigest())
GRACE = AdminUser("grace", password="scrypt$2")
USERS = (ADA, GRACE)


def who(cookie: str, *, users=USERS, now=NOW, secret=SECRET) -> AdminUser | None:
    return signed_in(secret, users, cookie, now=now)


def test_a_cookie_tells_who_signed_in():
    assert who(sign_in(SECRET, ADA, now=NOW)) is ADA
    assert who(sign_in(SECRET, GRACE, now=NOW)) is GRACE


def test_a_session_ends():
    cookie = sign_in(SECRET, ADA, now=NOW)

    assert who(cookie, now=NOW + LIFETIME - 1) is ADA
    assert who(cookie, now=NOW + LIFETIME) is None


def test_another_secret_signs_nobody_in():
    assert who(sign_in(b"x" * 32, ADA, now=NOW)) is None


@pytest.mark.parametrize(
    "users",
    [
        pytest.param((GRACE,), id="the operator is gone"),
        pytest.param((replace(ADA, password="scrypt$3"),), id="the password was changed"),
        pytest.param((replace(ADA, password=None),), id="the password was taken away"),
    ],
)
def test_a_session_ends_with_what_it_rests_on(users):
    assert who(sign_in(SECRET, ADA, now=NOW), users=users) is None


def forged(name: str = "ada", ends: str = "44200", tag: str | None = None) -> str:
    encoded, _, own = sign_in(SECRET, ADA, now=NOW).split(".")
    if name != "ada":
        encoded = urlsafe_b64encode(name.encode()).decode().rstrip("=")
    return f"{encoded}.{ends}.{own if tag is None else tag}"


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "a.b",
        "a.b.c.d",
        forged(name="grace"),
        forged(ends="99999999"),
        forged(ends="-1"),
        forged(ends="9" * 16),
        forged(tag=""),
        forged(tag="0" * 64),
        "\u00e9.1.2",
        "%%%.44200.x",
        "gICA.44200.x",
        "x" * 5000,
    ],
)
def test_a_cookie_that_is_not_ours_signs_nobody_in(cookie):
    assert who(cookie) is None


def test_the_forger_starts_from_a_cookie_that_counts():
    assert who(forged()) is ADA


def test_a_form_is_ours_by_purpose_and_nonce():
    token = form_token(SECRET, "login", "n1")

    assert is_form_token(SECRET, "login", "n1", token)
    assert not is_form_token(SECRET, "logout", "n1", token)
    assert not is_form_token(SECRET, "login", "n2", token)
    assert not is_form_token(SECRET, "login", "n1", "é")
    assert not is_form_token(SECRET, "login", "", form_token(SECRET, "login", ""))


def test_words_do_not_run_into_each_other():
    assert form_token(SECRET, "a", "bc") != form_token(SECRET, "ab", "c")


def test_a_bearer_token_is_one_operators():
    assert operator_of_token(USERS, "t-ada") is ADA
    assert operator_of_token(USERS, "t-grace") is None
    assert operator_of_token(USERS, "") is None
    assert operator_of_token((), "t-ada") is None
