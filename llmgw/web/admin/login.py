"""Signing in and out. Both are forms of ours, and show it by a token that is bound to a cookie."""

from __future__ import annotations

import logging
import secrets
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from aiohttp import web

from llmgw.core.errors import InvalidRequest
from llmgw.web.admin.operators import COOKIE, Operators, TooManyAttempts, address_of, is_secure
from llmgw.web.admin.rendering import render
from llmgw.web.admin.replies import html, see_other
from llmgw.web.admin.views import MOST_FIELDS, field_of
from llmgw.web.body import read_body
from llmgw.web.incoming import Incoming

log = logging.getLogger("llmgw.admin")

LOGIN: Final = "/admin/login"
FIRST_PAGE: Final = "/admin/upstreams"
NONCE: Final = "llmgw_login"
NONCE_CHARS: Final = 100
FORM_BYTES: Final = 16 * 1024
FORM_TYPE: Final = "application/x-www-form-urlencoded"

WRONG: Final = "The name or the password is wrong."
STALE: Final = "This form is no longer valid. Please sign in again."


def show_login(operators: Operators, incoming: Incoming) -> web.Response:
    next_page = _local(field_of(incoming.query, "next") or "")
    if operators.of_cookie(incoming) is not None:
        return see_other(next_page)
    return _form(operators, incoming, next_page)


async def log_in(operators: Operators, incoming: Incoming) -> web.Response:
    form = await _read_form(incoming)
    next_page = _local(form.get("next", ""))
    nonce = incoming.request.cookies.get(NONCE, "")
    is_ours = operators.is_form_token("login", nonce, form.get("token", ""))
    if not is_ours or not is_same_origin(incoming):
        return _form(operators, incoming, next_page, error=STALE, status=403)
    name = form.get("name", "")
    try:
        user = await operators.of_password(incoming, name, form.get("password", ""))
    except TooManyAttempts as error:
        log.warning("admin sign-in refused", extra={"address": address_of(incoming)})
        told = f"Too many attempts failed. Try again in {error.wait} seconds."
        return _form(operators, incoming, next_page, name=name, error=told, status=error.status)
    if user is None:
        log.warning("admin sign-in failed", extra={"address": address_of(incoming)})
        return _form(operators, incoming, next_page, name=name, error=WRONG, status=401)
    log.info("admin signed in", extra={"operator": user.name, "address": address_of(incoming)})
    response = see_other(next_page)
    operators.admit(response, user, incoming)
    response.del_cookie(NONCE, path=LOGIN)
    return response


async def log_out(operators: Operators, incoming: Incoming) -> web.Response:
    form = await _read_form(incoming)
    session = incoming.request.cookies.get(COOKIE, "")
    response = see_other(LOGIN)
    if operators.is_form_token("logout", session, form.get("token", "")):
        operators.dismiss(response)
    return response


def logout_token(operators: Operators, incoming: Incoming) -> str:
    return operators.form_token("logout", incoming.request.cookies.get(COOKIE, ""))


def ask_to_log_in(incoming: Incoming, tail: str) -> web.Response:
    """After that the operator is where the link led."""
    wanted = f"/admin/{tail}{incoming.query}" if tail else FIRST_PAGE
    return see_other(f"{LOGIN}?next={quote(wanted, safe='/')}")


def is_same_origin(incoming: Incoming) -> bool:
    """A browser that tells where a form came from must tell of us. `Sec-Fetch-Site` is its own
    judgement (Fetch Metadata, section 2.3); `Origin` has to be compared, and a proxy may have
    put another Host in place of the one that the browser asked for.
    """
    site = incoming.header("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = incoming.header("Origin")
    hosts = (incoming.header("Host"), incoming.header("X-Forwarded-Host"))
    if origin is None:
        return True
    host = _host_of(origin)
    return host != "" and host in hosts


def _host_of(origin: str) -> str:
    """Empty where there is none ("null"), or it can't be read."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _form(
    operators: Operators,
    incoming: Incoming,
    next_page: str,
    *,
    name: str = "",
    error: str = "",
    status: int = 200,
) -> web.Response:
    nonce = incoming.request.cookies.get(NONCE, "")
    if not 0 < len(nonce) <= NONCE_CHARS:
        nonce = secrets.token_urlsafe(24)
    token = operators.form_token("login", nonce)
    text = render("login.html", token=token, next=next_page, name=name, error=error)
    response = html(text, status=status)
    response.set_cookie(
        NONCE,
        nonce,
        path=LOGIN,
        max_age=3600,
        httponly=True,
        samesite="Strict",
        secure=is_secure(incoming),
    )
    return response


async def _read_form(incoming: Incoming) -> dict[str, str]:
    kind = (incoming.header("Content-Type") or "").split(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise InvalidRequest("a form is expected", status=415, code="unsupported_media_type")
    body = await read_body(incoming, limit=FORM_BYTES)
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise InvalidRequest("the form can't be read") from None
    return {name: values[0] for name, values in fields.items()}


def _local(path: str) -> str:
    """One of our pages and nothing else: a sign-in must not lead away, nor up."""
    is_ours = path.startswith("/admin/") and path.isprintable() and path.isascii()
    leads_away = any(mark in unquote(path) for mark in ("\\", "//", ".."))
    if not is_ours or leads_away or path.startswith(LOGIN):
        return FIRST_PAGE
    return path
