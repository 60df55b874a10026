"""The door to `/admin`: who comes in, what is there, and what is not there for whom."""

import re
from dataclasses import replace
from hashlib import sha256

import pytest

from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.config import AdminConfig, AdminUser
from llmgw.core.types import AssignmentId, RouteClass
from llmgw.store.usage import UsageLine
from tests.builders import node
from tests.fakes.admin import DAY, NIGHT, FakeBook, gateway_of, known, two_pools
from tests.fakes.gateway import FakeRegistry
from tests.fakes.settlements import settled
from tests.web.admin.conftest import AdminDoor
from tests.web.conftest import opened

PAGES = ("upstreams", "requests", "circuits")
TOKEN = "t-ada"
BEARER = (("Authorization", f"Bearer {TOKEN}"),)
OPEN = Circuit(CircuitState.OPEN, open_until=2e9, reason="upstream_error")


def with_token(config, token: str = TOKEN):
    ada, *others = config.admin.users
    digest = sha256(token.encode()).hexdigest()
    return replace(config, admin=AdminConfig((replace(ada, token_digest=digest), *others)))


def open_circuit(gateway, pool: str, name: str, model: str) -> None:
    key = CircuitKey(pool, AssignmentId(f"{pool}/{name}"), model, RouteClass.SSE)
    gateway.board.circuits[key] = OPEN


# --- off, and signed out


@pytest.mark.parametrize(
    "path", ["/admin", "/admin/login", "/admin/api/upstreams", "/admin/static/admin.css"]
)
async def test_without_operators_nothing_is_there(door, path):
    door.gateway.config = replace(door.gateway.config, admin=AdminConfig())

    assert (await door.get(path)).status == 404
    assert (await door.post("/admin/login", name="ada")).status == 404


@pytest.mark.parametrize("tail", ["", *PAGES, "panel", "live/upstreams", "nothing/here"])
async def test_whoever_is_not_signed_in_sees_the_form_alone(door, tail):
    reply = await door.get(f"/admin/{tail}")

    assert reply.status == 303
    assert reply.headers["location"].startswith("/admin/login?next=")
    assert reply.body == b""


@pytest.mark.parametrize("path", ["upstreams", "requests", "circuits", "routing", "nothing"])
async def test_the_api_tells_a_stranger_nothing(door, path):
    reply = await door.get(f"/admin/api/{path}", headers=(("Authorization", "Bearer wrong"),))

    assert (reply.status, reply.code) == (401, "invalid_admin_token")
    assert reply.headers["www-authenticate"].startswith("Bearer")


async def test_guessing_tokens_has_to_wait(door):
    wrong = (("Authorization", "Bearer wrong"),)
    for _ in range(5):
        assert (await door.get("/admin/api/circuits", headers=wrong)).status == 401

    reply = await door.get("/admin/api/circuits", headers=wrong)

    assert (reply.status, reply.code) == (429, "too_many_attempts")
    assert int(reply.headers["retry-after"]) > 0


async def test_a_right_token_is_taken_also_from_a_guessers_address(door):
    door.gateway.config = with_token(door.gateway.config)
    wrong = (("Authorization", "Bearer wrong"),)
    for _ in range(6):
        await door.get("/admin/api/circuits", headers=wrong)

    assert (await door.get("/admin/api/circuits", headers=BEARER)).status == 200


async def test_a_bearer_token_opens_the_api_and_no_page(door):
    door.gateway.config = with_token(door.gateway.config)

    assert (await door.get("/admin/api/upstreams", headers=BEARER)).status == 200
    assert (await door.get("/admin/upstreams", headers=BEARER)).status == 303


# --- what every answer has


@pytest.mark.parametrize("path", [*PAGES, "login", "nothing", "static/admin.js", "api/circuits"])
async def test_every_answer_keeps_to_itself(door, path):
    await door.log_in()

    reply = await door.get(f"/admin/{path}")

    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] in ("no-store", "no-cache")
    assert reply.headers["server"] == "llmgw"
    assert "access-control-allow-origin" not in reply.headers
    assert reply.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("path", ["login", *PAGES, "upstreams?routing=day/sun"])
async def test_no_page_has_script_or_style_of_its_own(door, path):
    if path != "login":
        await door.log_in()

    page = (await door.get(f"/admin/{path}")).body.decode()

    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page) == []


@pytest.mark.parametrize("name", ["admin.css", "admin.js", "icon.svg"])
async def test_files_are_asked_for_again_by_their_tag(door, name):
    first = await door.get(f"/admin/static/{name}")
    again = await door.get(
        f"/admin/static/{name}", headers=(("If-None-Match", first.headers["etag"]),)
    )

    assert (first.status, again.status, again.body) == (200, 304, b"")
    assert first.body


@pytest.mark.parametrize("name", ["", "nothing.css", "../templates/base.html", "%2e%2e/x"])
async def test_there_are_no_other_files(door, name):
    assert (await door.get(f"/admin/static/{name}")).status == 404


async def test_the_root_leads_to_the_first_page(door):
    await door.log_in()

    for path in ("/admin", "/admin/"):
        assert (await door.get(path)).headers["location"] == "/admin/upstreams"


async def test_an_unknown_page_says_so_inside_the_frame(door):
    await door.log_in()

    for path in ("nothing", "upstreams/more"):
        reply = await door.get(f"/admin/{path}")
        assert reply.status == 404
        assert b"There is no such page" in reply.body


@pytest.mark.parametrize("path", ["upstreams", "api/upstreams"])
async def test_nothing_can_be_changed(door, path):
    await door.log_in()

    reply = await door.post(f"/admin/{path}", x="y")

    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_head_is_answered_like_get(door):
    await door.log_in()

    head = await door.get("/admin/circuits", method="HEAD")
    get = await door.get("/admin/circuits")

    assert (head.status, head.headers["content-length"]) == (200, get.headers["content-length"])


async def test_names_from_outside_are_escaped(door):
    evil = '<img src=x onerror="alert(1)">'
    states = [replace(one, discovery=known(evil)) for one in door.gateway.registry.states]
    door.gateway.registry = FakeRegistry(tuple(states))
    open_circuit(door.gateway, "day", "sun", evil)
    door.book.usage["day"] = [UsageLine(evil, 1, 1, 0, 0, 0, 0, 0)]
    await door.log_in()

    for path in ("upstreams?routing=day/sun", "circuits"):
        page = (await door.get(f"/admin/{path}")).body
        assert b"<img" not in page
        assert b"&lt;img src=x onerror=&#34;" in page


# --- the panel


async def test_without_script_a_link_opens_the_panel(door):
    await door.log_in()
    shut = (await door.get("/admin/upstreams")).body.decode()
    [link] = re.findall(r'href="(\?routing=[^"#]*)', shut)

    page = (await door.get(f"/admin/upstreams{link}")).body.decode()

    assert "Advertised models" not in shut
    assert 'aria-expanded="true"' in page
    for word in ("Advertised models", "m1", "m2", "observed", "Serving signals", "Capabilities"):
        assert word in page
    assert page.index("Advertised models") < page.index("Usage by model in pool")


async def test_with_script_the_panel_comes_alone(door):
    await door.log_in()

    reply = await door.get("/admin/panel?routing=day%2Fsun")

    assert reply.status == 200
    assert b"<html" not in reply.body
    assert b"Advertised models" in reply.body


async def test_a_panel_that_does_not_exist_leaves_the_page_whole(door):
    await door.log_in()

    page = await door.get("/admin/upstreams?routing=day/nothing")

    assert page.status == 200
    assert b"Advertised models" not in page.body
    assert (await door.get("/admin/panel?routing=day/nothing")).status == 404
    assert (await door.get("/admin/api/routing")).status == 404
    assert (await door.get("/admin/panel/more")).status == 404


@pytest.mark.parametrize("query", ["&".join("abcdefghijklmnopqrstuvw"), "routing=%FF", "routing"])
async def test_a_query_that_no_page_makes_is_left_alone(door, query):
    await door.log_in()

    assert (await door.get(f"/admin/upstreams?{query}")).status == 200
    assert (await door.get(f"/admin/login?{query}")).headers["location"] == "/admin/upstreams"
    assert (await door.get(f"/admin/api/routing?{query}")).status == 404


async def test_an_operator_without_pools_is_told_so(door):
    await door.log_in("nobody")

    page = await door.get("/admin/upstreams")

    assert page.status == 200
    assert b"No pool is assigned to you" in page.body
    assert b"sun" not in page.body


# --- what belongs to another pool does not exist


@pytest.fixture
async def crowded(supervisor):
    """Everything of pool `night` is called `moon...`."""
    config = with_token(two_pools(night=[node("moon", port=9000)]))
    gateway = gateway_of(config, "m1")
    sun, moon = gateway.registry.states
    gateway.registry = FakeRegistry((sun, replace(moon, discovery=known("moon-model"))))
    open_circuit(gateway, "day", "sun", "m1")
    open_circuit(gateway, "night", "moon", "moon-circuit")
    for at in range(7):
        gateway.observed.settled(
            settled(f"moon-request-{at}", pool="night", model="moon-model", started=1e9)
        )
    book = FakeBook(
        usage={
            "day": [UsageLine("m1", 3, 3, 0, 0, 5, 6, 0)],
            "night": [UsageLine("moon-model", 4711, 4711, 0, 0, 5, 6, 0)],
        },
    )
    async with opened(AdminDoor(gateway, book, supervisor)) as door:
        yield door


@pytest.mark.parametrize(
    "path",
    [
        *PAGES,
        "upstreams?routing=night/moon",
        "upstreams?routing=day/sun",
        "nothing",
        *(f"api/{page}" for page in PAGES),
        "api/routing?routing=day/sun",
        "panel?routing=day/sun",
    ],
)
async def test_another_pools_things_appear_nowhere(crowded, path):
    await crowded.log_in("ada")

    reply = await crowded.get(f"/admin/{path}")

    assert b"moon" not in reply.body
    assert b"night" not in reply.body
    assert b"4711" not in reply.body
    assert b"4\xe2\x80\x89711" not in reply.body


async def test_another_pools_panel_is_as_unknown_as_one_that_never_was(crowded):
    await crowded.log_in("ada")

    theirs = await crowded.get("/admin/api/routing?routing=night/moon")
    never = await crowded.get("/admin/api/routing?routing=night/nothing")

    assert (theirs.status, theirs.json) == (404, never.json)


async def test_the_other_operator_sees_both(crowded):
    await crowded.log_in("grace")

    page = (await crowded.get("/admin/upstreams?routing=night/moon")).body
    circuits = (await crowded.get("/admin/api/circuits")).json["circuits"]

    assert b"moon-model" in page
    assert b"4\xe2\x80\x89711" in page
    assert {one["model"] for one in circuits} == {"m1", "moon-circuit"}


async def test_the_book_is_only_asked_for_the_operators_pools(crowded):
    await crowded.log_in("ada")
    for path in (*PAGES, "api/routing?routing=day/sun"):
        await crowded.get(f"/admin/{path}")

    assert set(crowded.book.asked) == {frozenset({DAY})}


async def test_pools_are_those_of_the_configuration_of_now(crowded):
    await crowded.log_in("grace")
    config = crowded.gateway.config
    ada, grace, _ = config.admin.users
    less = AdminUser(grace.name, grace.password, None, (NIGHT,))
    crowded.gateway.config = replace(config, admin=AdminConfig((ada, less)))

    document = (await crowded.get("/admin/api/upstreams")).json

    assert [pool["name"] for pool in document["pools"]] == ["night"]
