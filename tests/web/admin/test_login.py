"""Signing in and out."""

from dataclasses import replace

import pytest

from llmgw.core.config import AdminConfig
from tests.fakes.admin import PASSWORD
from tests.web.admin.conftest import hidden_fields


async def test_an_operator_signs_in_and_is_where_the_link_led(door):
    fields = await door.form(query="?next=/admin/circuits")

    reply = await door.post("/admin/login", **{**fields, "name": "ada", "password": PASSWORD})

    assert (reply.status, reply.headers["location"]) == (303, "/admin/circuits")
    assert (await door.get("/admin/circuits")).status == 200


async def test_the_session_cookie_keeps_to_itself(door):
    await door.log_in()

    assert door.set_cookies["llmgw_admin"] == {
        "HttpOnly",
        "Max-Age=43200",
        "Path=/admin",
        "SameSite=Strict",
    }
    assert "llmgw_login" not in door.cookies


async def test_behind_https_cookies_are_secure(door):
    https = (("X-Forwarded-Proto", "https"),)
    page = await door.get("/admin/login", headers=https)
    assert "Secure" in door.set_cookies["llmgw_login"]

    fields = {**hidden_fields(page), "name": "ada", "password": PASSWORD}
    await door.post("/admin/login", headers=https, **fields)

    assert "Secure" in door.set_cookies["llmgw_admin"]


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "wrong"), ("eve", PASSWORD), ("", ""), ("ada", PASSWORD + " "), ("\ud800", "x")],
    ids=["wrong password", "unknown name", "empty", "almost", "a lone surrogate"],
)
async def test_who_is_not_known_is_told_no_more_than_that(door, name, password):
    fields = await door.form()
    body = {**fields, "name": name.encode("utf-8", "replace").decode(), "password": password}

    reply = await door.post("/admin/login", **body)

    assert reply.status == 401
    assert b"The name or the password is wrong." in reply.body
    assert "llmgw_admin" not in door.cookies
    assert password == "" or f'value="{password}"'.encode() not in reply.body


async def test_a_name_is_escaped_where_it_is_shown_again(door):
    reply = await door.log_in('"><script>alert(1)</script>', "x")

    assert b"<script>alert" not in reply.body


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
async def test_a_form_that_is_not_ours_signs_nobody_in(door, token):
    fields = await door.form()

    reply = await door.post(
        "/admin/login", **{**fields, "token": token, "name": "ada", "password": PASSWORD}
    )

    assert reply.status == 403
    assert "llmgw_admin" not in door.cookies


async def test_a_forms_token_is_bound_to_the_browser_that_got_it(door):
    fields = await door.form()
    door.cookies["llmgw_login"] = "somebody-elses"

    reply = await door.post("/admin/login", **{**fields, "name": "ada", "password": PASSWORD})

    assert reply.status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((("Origin", "http://gateway"),), 303),
        ((("Origin", "https://evil.example"),), 403),
        ((("Origin", "null"),), 403),
        ((("Origin", "http://[::"),), 403),
        ((("Sec-Fetch-Site", "same-origin"), ("Origin", "https://public.example")), 303),
        ((("Sec-Fetch-Site", "cross-site"),), 403),
        ((("Origin", "https://llm.example"), ("X-Forwarded-Host", "llm.example")), 303),
        ((), 303),
    ],
    ids=[
        "ours",
        "another's",
        "hidden",
        "one that can't be read",
        "the browser says it is ours",
        "the browser says it is another's",
        "ours behind a proxy",
        "a browser that says nothing",
    ],
)
async def test_a_form_comes_from_our_own_page(door, headers, status):
    fields = await door.form()

    reply = await door.post(
        "/admin/login", headers=headers, **{**fields, "name": "ada", "password": PASSWORD}
    )

    assert reply.status == status


@pytest.mark.parametrize(
    "next_page",
    [
        "https://evil.example/",
        "//evil.example",
        "/admin/\\evil",
        "/admin//evil.example",
        "/v1/models",
        "/admin/../v1/models",
        "/admin/%2e%2e/v1/models",
        "/admin/login?next=/admin/x",
        "/admin/\r\nSet-Cookie: x=y",
        "",
    ],
)
async def test_signing_in_leads_nowhere_else(door, next_page):
    fields = await door.form()

    reply = await door.post(
        "/admin/login",
        **{**fields, "next": next_page, "name": "ada", "password": PASSWORD},
    )

    assert (reply.status, reply.headers["location"]) == (303, "/admin/upstreams")


async def test_too_many_failures_have_to_wait_even_with_the_right_password(door):
    for _ in range(5):
        assert (await door.log_in(password="wrong")).status == 401

    reply = await door.log_in()

    assert reply.status == 429
    assert b"Try again in" in reply.body
    assert (await door.log_in("grace")).status == 303


async def test_whoever_is_signed_in_needs_no_form(door):
    await door.log_in()

    reply = await door.get("/admin/login?next=/admin/requests")

    assert (reply.status, reply.headers["location"]) == (303, "/admin/requests")


async def test_signing_out_ends_it(door):
    await door.log_in()
    fields = hidden_fields(await door.get("/admin/upstreams"))

    reply = await door.post("/admin/logout", **fields)

    assert (reply.status, reply.headers["location"]) == (303, "/admin/login")
    assert (await door.get("/admin/upstreams")).status == 303


async def test_nobody_else_can_sign_an_operator_out(door):
    await door.log_in()

    await door.post("/admin/logout", token="0" * 64)

    assert (await door.get("/admin/upstreams")).status == 200


async def test_a_session_ends_when_the_operator_is_gone_from_the_configuration(door):
    await door.log_in()
    config = door.gateway.config
    door.gateway.config = replace(config, admin=AdminConfig(config.admin.users[1:]))

    reply = await door.get("/admin/upstreams")

    assert reply.headers["location"] == "/admin/login?next=/admin/upstreams"


async def test_only_forms_are_read(door):
    client = await door.client()
    body = b'{"name":"ada"}'
    head = b"POST /admin/login HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"

    reply = await client.ask(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    assert reply.status == 415


@pytest.mark.parametrize("body", [{"x": "a" * 20_000}, {f"f{at}": "" for at in range(30)}])
async def test_a_form_is_bounded(door, body):
    reply = await door.post("/admin/login", **body)

    assert reply.status in (400, 413)
