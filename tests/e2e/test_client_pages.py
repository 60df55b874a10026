"""The snippets of `docs/clients` do what they say; pages that are not run say so."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from llmgw.sim.node import SimNode

PAGES = Path(__file__).parents[2] / "docs" / "clients"
WITHIN = 60.0
CUT = '\nprint("=====")\n'  # all of a page in one process: the SDKs take long to load

SAYS = {
    "openai": (
        ["model llama", "chat Hello from a.", "Hello from a. ", "tokens "],
        ["first Hello from a.", "Hello from a.", "status completed"],
        ["vectors 2", "heard Hello from a."],
        ["status 503 no_eligible_backend", "request req_"],
    ),
    "anthropic": (
        ["message Hello from a.", "tokens 5 20"],
        ["Hello from a.", "stopped end_turn", "counted 5"],
        ["status 503 api_error", "request req_"],
    ),
    "langchain": (["whole Hello from a.", "Hello from a."], ["vectors 2"]),
}


def snippets(page: str) -> list[str]:
    text = (PAGES / f"{page}.md").read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


async def run(code: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        env={**os.environ, "NO_PROXY": "*"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WITHIN):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.parametrize("page", SAYS)
async def test_the_snippets_of_a_page_do_what_they_say(serve, page):
    codes = snippets(page)
    assert len(codes) == len(SAYS[page])
    async with SimNode(["llama"], name="a") as node:
        gateway = await serve([node.url])

        said = await run(CUT.join(codes).replace("http://localhost:8000", gateway.url))

    for text, expected in zip(said.split("=====\n"), SAYS[page], strict=True):
        for words in expected:
            assert words in text


@pytest.mark.parametrize("page", sorted(path.stem for path in PAGES.glob("*.md")))
def test_a_page_says_whether_it_is_run(page):
    text = (PAGES / f"{page}.md").read_text()

    assert ("run by the tests, against" in text or "(`langchain-openai`), against" in text) == (
        page in SAYS
    )
    assert ("This page was not run by the tests" in text) == (page not in SAYS)


@pytest.mark.parametrize("page", ["claude-code", "codex", "open-webui", "opencode"])
def test_a_page_that_was_run_by_hand_names_the_version_and_the_command(page):
    text = (PAGES / f"{page}.md").read_text()

    assert re.search(r"but by hand with `[\w@/-]+` \d+\.\d+\.\d+, against", text)
    assert "\n## What was run\n\n    llmgw sim --port" in text
