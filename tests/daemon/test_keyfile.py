import hashlib
import os

import pytest

from llmgw.config_file import load, load_keys
from llmgw.core.errors import AuthenticationFailed
from llmgw.daemon.keyfile import KeyFileWatch, Keys


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


async def test_a_file_that_may_have_become_readable_is_read_again(watch, path, looks):
    path.write_text("one")
    await watch.look()
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:  # the kernel's clock ticks every few milliseconds
        path.chmod(0o640)

    await watch.look()

    assert looks == ["one", "one"]


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


TOKEN = "llmgw-secret"
DIGEST = "sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest()
KEY = f'[[auth.keys]]\nname = "k"\ndigest = "{DIGEST}"\n'
OTHER = KEY.replace('"k"', '"other"').replace(DIGEST, "sha256:" + "0" * 64)


def is_let_in(ring, token=TOKEN):
    try:
        ring.authenticate(token, now=0.0)
    except AuthenticationFailed:
        return False
    return True


@pytest.fixture
def rings():
    return []


@pytest.fixture
def keys(tmp_path, rings):
    """Keys of a configuration without [auth], beside which there is no keys file yet."""
    config = tmp_path / "llmgw.toml"
    config.write_text('[[nodes]]\nurl = "http://127.0.0.1:9"\n')
    keys = Keys(load(config, environ={}, state_dir=tmp_path), rings.append)
    keys.reload = lambda: keys.take(load(config, environ={}, state_dir=tmp_path))
    return keys


async def test_without_a_keys_file_everybody_is_let_in(keys, rings):
    await keys.look()

    assert is_let_in(keys.ring, None)
    assert rings == []


async def test_a_key_that_is_written_counts_and_closes_the_rest_out(keys, path, rings):
    path.write_text(KEY)

    await keys.look()

    assert is_let_in(rings[-1])
    assert not is_let_in(rings[-1], "another")


async def test_a_revoked_key_no_longer_counts(keys, path, rings):
    path.write_text(KEY + OTHER)
    await keys.look()

    path.write_text(OTHER)
    await keys.look()

    assert not is_let_in(rings[-1])


@pytest.mark.parametrize(
    "text",
    [pytest.param("", id="empty"), pytest.param("x = [", id="one that does not parse")],
)
async def test_any_file_that_appears_closes(keys, path, text):
    path.write_text(text)

    await keys.look()

    assert not is_let_in(keys.ring)


async def test_a_file_that_no_longer_parses_leaves_the_keys_last_read(keys, path, caplog):
    path.write_text(KEY)
    await keys.look()

    path.write_text("x = [")
    await keys.look()

    assert is_let_in(keys.ring)
    assert [one.message for one in caplog.records] == ["keys file refused"]


async def test_a_file_that_is_gone_leaves_the_keys_last_read_until_a_reload(keys, path):
    path.write_text(KEY)
    await keys.look()
    path.unlink()
    await keys.look()
    assert not is_let_in(keys.ring, None)

    keys.reload()

    assert is_let_in(keys.ring, None)


async def test_what_was_read_for_an_older_configuration_does_not_count(
    keys, path, rings, monkeypatch
):
    def overtaken(*args, **kwargs):
        path.unlink()
        keys.reload()
        return load_keys(fresh)

    fresh = path.with_name("fresh.toml")
    for one in (path, fresh):
        one.write_text(KEY)
    monkeypatch.setattr("llmgw.daemon.keyfile.load_keys", overtaken)

    await keys.look()

    assert rings == []
    assert is_let_in(keys.ring, None)


async def test_a_file_that_did_not_change_its_keys_changes_no_ring(keys, path, rings):
    path.write_text(KEY)
    await keys.look()

    path.write_text(f"# the same\n{KEY}")
    await keys.look()

    assert len(rings) == 1
