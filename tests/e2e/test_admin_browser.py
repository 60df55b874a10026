"""The admin pages in a real Chromium: run by `make browser`.

One gateway with simulated nodes serves all tests. `LLMGW_SCREENSHOTS` names a folder for pictures.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.admin_world import MODELS, PASSWORD, opened_world

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGES = ["upstreams", "requests", "circuits"]
LIVE = '.live[data-state="live"]'
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 320, "height": 640}
LOOKS = [
    pytest.param("light", WIDE, id="light"),
    pytest.param("dark", WIDE, id="dark"),
    pytest.param("light", NARROW, id="320 px"),
    pytest.param("dark", NARROW, id="320 px, dark"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("world")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(folder):
    async with opened_world(folder) as world:
        await world.busy()
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium():
    from playwright.async_api import async_playwright

    path = shutil.which("chromium")
    assert path, "chromium is not installed (Debian: apt-get install chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def tab(chromium, world):
    """`await tab(colour, size)` opens a page; what it complains of fails the test."""
    contexts, complaints = [], []

    async def opened(colour="light", size=WIDE, **options):
        context = await chromium.new_context(color_scheme=colour, viewport=size, **options)
        contexts.append(context)
        page = await context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: _is_complaint(line) and complaints.append(line.text))
        return page

    yield opened
    for context in contexts:
        await context.close()
    assert complaints == []


@pytest_asyncio.fixture(loop_scope="module")
async def signed_in(tab, world):
    async def opened(*look, name="grace", **options):
        page = await tab(*look, **options)
        await page.goto(f"{world.url}/admin/login")
        await page.get_by_label("Name").fill(name)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url(f"{world.url}/admin/upstreams")
        return page

    return opened


def _is_complaint(line) -> bool:
    """The browser also notes pages that are meant to answer 401 or 404."""
    return line.type == "error" and not line.location["url"].endswith(("/nothing", "/login"))


async def look_at(page, world, name: str) -> None:
    await page.goto(f"{world.url}/admin/{name}")
    await page.locator(LIVE).wait_for()


async def picture(page, name: str) -> None:
    if folder := os.environ.get("LLMGW_SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page="requests" not in name)


async def violations(page) -> list[str]:
    from axe_playwright_python.async_playwright import Axe

    found = (await Axe().run(page)).response
    assert len(found["passes"]) > 10, "axe has not looked"
    return [
        f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]


async def overflow(page) -> int:
    return await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def routing_of(page, name: str):
    return page.get_by_role("button", name=f"Routing of {name}", exact=True)


def suffix(colour, size) -> str:
    return f"{colour}-{size['width']}"


async def test_signing_in_by_keyboard_alone(tab, world):
    page = await tab()
    await page.goto(f"{world.url}/admin/requests")

    await page.keyboard.type("ada")
    await page.keyboard.press("Tab")
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Enter")

    await page.wait_for_url(f"{world.url}/admin/requests")
    assert await page.get_by_role("heading", level=1).inner_text() == "Requests"


async def test_a_wrong_password_is_said_to_a_screen_reader(tab, world):
    page = await tab()
    await page.goto(f"{world.url}/admin/login")
    await page.get_by_label("Name").fill("ada")
    await page.get_by_label("Password").fill("not this one")
    await page.keyboard.press("Enter")

    assert "wrong" in await page.get_by_role("alert").inner_text()
    focused = await page.evaluate("document.activeElement.id")
    assert focused == "password"


async def test_signing_out(signed_in, world):
    page = await signed_in()

    await page.get_by_role("button", name="Sign out").click()

    await page.wait_for_url(f"{world.url}/admin/login")
    await page.goto(f"{world.url}/admin/upstreams")
    assert "/admin/login" in page.url


async def test_a_panel_opens_and_closes_by_mouse(signed_in):
    page = await signed_in()
    button = routing_of(page, "gpu-2")

    await button.click()
    table = page.get_by_role("region", name="Advertised models of gpu-2")
    await table.wait_for()

    assert await button.get_attribute("aria-expanded") == "true"
    for model in MODELS:
        assert await table.get_by_text(model, exact=True).is_visible()
    assert await table.get_by_text("rejected").count() == 1
    assert "routing=" in page.url
    await button.click()
    await table.wait_for(state="detached")
    assert await button.get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize("key", ["Enter", "Space"])
async def test_a_panel_opens_by_keyboard_and_escape_leads_back(signed_in, key):
    page = await signed_in()
    button = routing_of(page, "gpu-1")
    await button.focus()

    await page.keyboard.press(key)
    region = page.get_by_role("region", name="Advertised models of gpu-1")
    await region.wait_for()
    await page.keyboard.press("Tab")
    assert await region.evaluate("one => one === document.activeElement")
    await page.keyboard.press("Escape")

    await region.wait_for(state="detached")
    assert await button.evaluate("one => one === document.activeElement")


async def test_only_one_panel_is_open(signed_in):
    page = await signed_in()
    await routing_of(page, "gpu-1").click()
    await page.get_by_role("region", name="Advertised models of gpu-1").wait_for()

    await routing_of(page, "gpu-2").click()

    await page.get_by_role("region", name="Advertised models of gpu-2").wait_for()
    assert await page.get_by_role("region", name="Advertised models of gpu-1").count() == 0


async def test_a_change_is_seen_without_a_reload(signed_in, world):
    page = await signed_in()
    await page.locator(LIVE).wait_for()
    await page.evaluate("window.stillHere = true")
    row = page.locator(".assignment", has=page.get_by_role("heading", name="night-1"))
    figure = row.locator(".figure", has_text="Requests").locator(".number")
    before = int(await figure.inner_text())

    await world.ask(MODELS[0], pool="night")

    await _until(figure, str(before + 1))
    assert await page.evaluate("window.stillHere") is True


async def test_a_live_change_does_not_take_the_focus_away(signed_in, world):
    page = await signed_in()
    await routing_of(page, "night-1").click()
    region = page.get_by_role("region", name="Advertised models of night-1")
    await region.wait_for()
    await region.focus()

    await world.ask(MODELS[1], pool="night", stream=True)

    row = region.get_by_role("row", name=MODELS[1])
    await row.get_by_text("serving").first.wait_for()
    assert await region.evaluate("one => one === document.activeElement")


async def test_without_script_everything_can_be_reached(signed_in, world):
    page = await signed_in(java_script_enabled=False)

    await page.get_by_role("link", name="Routing of gpu-2", exact=True).click()

    assert await page.get_by_text("Advertised models", exact=True).is_visible()
    assert await page.get_by_text("Live", exact=True).count() == 0
    for name in ("Requests", "Circuits"):
        await page.get_by_role("link", name=name, exact=True).click()
        assert await page.get_by_role("heading", level=1).inner_text() == name


async def test_an_operator_of_one_pool_sees_that_one(signed_in, world):
    page = await signed_in(name="ada")
    for name in PAGES:
        await look_at(page, world, name)
        assert "night" not in await page.content()


async def test_the_skip_link_leads_past_the_navigation(signed_in):
    page = await signed_in()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")

    assert await page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize(("colour", "size"), LOOKS)
async def test_the_login_form_can_be_used_by_all(tab, world, colour, size):
    page = await tab(colour, size)
    await page.goto(f"{world.url}/admin/login")

    await picture(page, f"login-{suffix(colour, size)}")
    assert await overflow(page) <= 0
    assert await violations(page) == []


@pytest.mark.parametrize(("colour", "size"), LOOKS)
async def test_every_page_can_be_used_by_all(signed_in, world, colour, size):
    page = await signed_in(colour, size)
    for name in [*PAGES, "nothing"]:
        await page.goto(f"{world.url}/admin/{name}")
        if name in PAGES:
            await page.locator(LIVE).wait_for()
            await picture(page, f"{name}-{suffix(colour, size)}")

        assert await overflow(page) <= 0, name
        assert await violations(page) == [], name


@pytest.mark.parametrize(("colour", "size"), LOOKS)
async def test_an_open_panel_can_be_used_by_all(signed_in, world, colour, size):
    page = await signed_in(colour, size)
    await routing_of(page, "gpu-2").click()
    await page.get_by_role("region", name="Advertised models of gpu-2").wait_for()

    await picture(page, f"routing-{suffix(colour, size)}")
    assert await overflow(page) <= 0
    assert await violations(page) == []


async def test_dark_is_dark(signed_in):
    page = await signed_in("dark", WIDE)

    colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert max(int(one) for one in colour.strip("rgb()").split(",")) < 60


async def _until(locator, text: str) -> None:
    for _ in range(300):
        if await locator.inner_text() == text:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{text} was not seen, but {await locator.inner_text()}")
