import os

import pytest

from llmgw.daemon.keyfile import KeyFileWatch


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.toml"


@pytest.fixture
def looks():
    return []


@pytest.fixture
def watch(path, looks):
    async def changed():
        looks.append(path.read_text())

    watch = KeyFileWatch(changed)
    watch.follow(path)
    return watch


async def test_a_file_that_appears_is_read(watch, path, looks):
    await watch.look()
    path.write_text("one")

    await watch.look()
    await watch.look()

    assert looks == ["one"]


async def test_a_file_that_was_replaced_is_read_again(watch, path, looks, tmp_path):
    path.write_text("one")
    await watch.look()
    fresh = tmp_path / "fresh"
    fresh.write_text("two")
    os.utime(fresh, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    fresh.replace(path)

    await watch.look()

    assert looks == ["one", "two"]


async def test_a_file_that_is_gone_is_no_change(watch, path, looks):
    path.write_text("one")
    await watch.look()
    path.unlink()

    await watch.look()

    assert looks == ["one"]


async def test_after_a_reload_the_file_is_read_once_more(watch, path, looks):
    path.write_text("one")
    await watch.look()
    watch.follow(path)

    await watch.look()
    await watch.look()

    assert looks == ["one", "one"]


async def test_without_a_file_to_follow_nothing_is_looked_at(watch, path, looks):
    watch.follow(None)
    path.write_text("one")

    await watch.look()

    assert looks == []
