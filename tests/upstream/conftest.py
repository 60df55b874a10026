"""What has connections is tested on both loops that the program may run on."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from llmgw.daemon.loop import FairLoop

ON_BOTH_LOOPS = {
    *("test_address.py", "test_connection.py", "test_exchange.py", "test_pool.py"),
    *("test_client.py", "test_inquiry.py", "test_probe.py", "test_reach.py"),
}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    default = {"asyncio": FairLoop}
    if item.path.name in ON_BOTH_LOOPS:
        return {**default, "uvloop": uvloop.new_event_loop}
    return default
