import asyncio
import contextlib
import logging
import os
import resource

import pytest

from llmgw.daemon import descriptors
from llmgw.daemon.descriptors import DescriptorWatch, can_open_one


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "llmgw")
    return lambda: [(one.levelname, one.message) for one in caplog.records]


OUT = ("ERROR", "no file descriptors left")
BACK = ("INFO", "file descriptors left again")


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        pytest.param([True, True], [], id="always some"),
        pytest.param([False, False, False], [OUT], id="none for long"),
        pytest.param([True, False, False, True, True], [OUT, BACK], id="some again"),
        pytest.param([False, True, False], [OUT, BACK, OUT], id="none twice"),
    ],
)
def test_each_change_is_told_once(told, found, lines):
    watch = DescriptorWatch(can_open=iter(found).__next__)

    for _ in found:
        watch.look()

    assert told() == lines


def test_the_limit_is_told(caplog):
    DescriptorWatch(can_open=lambda: False).look()

    assert caplog.records[0].limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_process_at_its_limit_can_open_none():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert can_open_one()
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, hard))
        with contextlib.suppress(OSError):
            taken += iter(lambda: os.open(os.devnull, os.O_RDONLY), None)

        assert not can_open_one()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in taken:
            os.close(one)


def test_another_fault_says_nothing_of_descriptors(monkeypatch):
    monkeypatch.setattr(os, "devnull", "/nowhere/at/all")

    assert can_open_one()


async def test_it_looks_again_and_again(told, monkeypatch):
    monkeypatch.setattr(descriptors, "EVERY", 0.0)
    found = iter([True, False, True])
    watch = DescriptorWatch(can_open=found.__next__)

    with pytest.raises(RuntimeError, match="StopIteration"):
        async with asyncio.timeout(5):
            await watch.run()

    assert told() == [OUT, BACK]
