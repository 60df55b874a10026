"""What is written of each request, a second's worth at once: `make bench-micro`."""

import asyncio
import io
import itertools

import pytest

from llmgw.core.config import LogConfig
from llmgw.core.settle import Settlement
from llmgw.daemon.tally import Tally
from llmgw.observe import logs
from llmgw.store.settled import Client, rows_of
from llmgw.store.store import open_database
from llmgw.web.access import AccessRecord, Ending
from tests.fakes.settlements import settled

REQUESTS = 1000
CLIENT = Client("search", (("team", "find"),))


@pytest.fixture
def batches():
    """Each of them new, of two models."""
    numbers = itertools.count()

    def batch() -> list[Settlement]:
        begin = next(numbers) * REQUESTS
        return [
            settled(f"req_0123456789ab{number:08x}", model=f"model-{number % 2}", started=number)
            for number in range(begin, begin + REQUESTS)
        ]

    return batch


def test_rows_into_sqlite(benchmark, tmp_path, batches):
    """The thread of the writer, with its commit."""

    def new_batch():
        return ([(one.request, one.attempts, CLIENT, "instance") for one in batches()],), {}

    with asyncio.Runner() as runner:
        database = runner.run(open_database(f"sqlite:///{tmp_path}/llmgw.db"))
        benchmark.pedantic(database._bulk._write, setup=new_batch, rounds=30)
        runner.run(database.close())


def test_rows_for_any_database(benchmark, batches):
    batch = [(one.request, one.attempts, CLIENT, "instance") for one in batches()]
    benchmark(lambda: [rows_of(one) for one in batch])


@pytest.mark.parametrize("style", ["json", "logfmt"])
def test_access_lines(benchmark, style):
    """With the counters."""
    records = [
        AccessRecord(
            "POST",
            "/v1/chat/completions",
            200,
            500 + number % 100,
            0.01 + number / 1e5,
            f"req_0123456789ab{number:08x}",
            Ending.WHOLE,
            "search",
            "llama",
            "llama",
            f"cluster/node-{number % 2}",
            1,
            0.0002 + number / 1e7,
        )
        for number in range(REQUESTS)
    ]
    logs.setup(LogConfig(format=style), io.StringIO())
    tally = Tally(gateway=None)

    async def tell():
        for record in records:
            tally(record)
        logs._handler.flush()

    with asyncio.Runner() as runner:
        benchmark(lambda: runner.run(tell()))
