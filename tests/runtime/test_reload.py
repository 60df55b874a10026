import asyncio

import pytest

from llmgw.runtime.reload import Outcome, Reloads, Result


class Held:
    """A reload that ends when it is told to."""

    def __init__(self):
        self.began = []
        self.running = 0
        self.most = 0
        self.gate = asyncio.Semaphore(0)

    async def once(self, number):
        self.began.append(number)
        self.running += 1
        self.most = max(self.most, self.running)
        await self.gate.acquire()
        self.running -= 1


@pytest.fixture
async def held():
    return Held()


@pytest.fixture
async def reloads(held):
    reloads = Reloads(held.once)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reloads.run())
        yield reloads
        task.cancel()


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nothing_is_loaded_unasked(reloads, held):
    await settle()

    assert held.began == []


async def test_an_ask_during_a_reload_is_met_by_one_that_begins_later(reloads, held):
    reloads.ask()
    await settle()
    reloads.ask()
    await settle()
    assert held.began == [1]

    held.gate.release()
    await settle()

    assert held.began == [1, 2]
    assert held.most == 1


async def test_many_asks_during_one_reload_are_met_by_one_more(reloads, held):
    reloads.ask()
    await settle()
    for _ in range(5):
        reloads.ask()
    for _ in range(4):
        held.gate.release()
    await settle()
    await settle()

    assert held.began == [1, 2]


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        pytest.param(9.9, True, id="it began after the ask"),
        pytest.param(10.1, False, id="it may have read the file before the ask"),
    ],
)
def test_whose_ask_an_outcome_answers(asked, answers):
    assert Outcome(1, Result.SUCCESS, began=10.0).answers(asked) is answers
