"""The keys file as the command line edits it."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from llmgw.config_file import ConfigError, load_keys
from llmgw.config_file.key_file import KeyFile

DIGEST = "sha256:" + "a" * 64
POOLS = '[[pools]]\nname = "p"\n[[pools.assignments]]\nupstream = "a"\n'


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "llmgw.toml"
    path.write_text(POOLS)
    return path


@pytest.fixture
def keys(config):
    return KeyFile.of(config)


def row(name: str = "one", digest: str = DIGEST, pool: str = "p") -> dict[str, object]:
    return {"name": name, "digest": digest, "pool": pool}


def add(keys: KeyFile, *rows: dict[str, object]) -> None:
    with keys.editing() as found:
        found.extend(rows)


def test_a_key_that_was_added_is_one_that_the_gateway_reads(keys):
    add(keys, row())

    (key,) = load_keys(keys.path, pools={"p"})
    assert (key.name, key.pool, key.digest) == ("one", "p", "a" * 64)


def test_a_new_file_is_for_the_service_alone(keys, config):
    add(keys, row())

    seen = keys.path.stat()
    assert stat.S_IMODE(seen.st_mode) == 0o640
    assert (seen.st_uid, seen.st_gid) == (config.stat().st_uid, config.stat().st_gid)


def test_a_file_that_is_replaced_keeps_mode_owner_and_group(keys):
    keys.path.write_text("")
    keys.path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(keys.path, 12, 34)
    before = keys.path.stat()

    add(keys, row())

    after = keys.path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([row(pool="q")], 'no pool "q"', id="a pool that there is not"),
        pytest.param([row(), row(digest="sha256:" + "b" * 64)], "name", id="a name twice"),
        pytest.param([row(), row("two")], "digest", id="a key twice"),
        pytest.param([row(digest="secret")], "sha256", id="no digest"),
    ],
)
def test_what_the_gateway_would_refuse_is_refused_and_changes_nothing(keys, rows, words):
    add(keys, row("old", "sha256:" + "c" * 64))
    before = keys.path.read_bytes()

    with pytest.raises(ConfigError, match=words) as refused:
        add(keys, *rows)

    assert keys.path.read_bytes() == before
    assert sorted(one.name for one in keys.path.parent.iterdir()) == ["keys.toml", "llmgw.toml"]
    assert all(not fault.place.startswith(".") for fault in refused.value.faults)


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        pytest.param([row("own", "sha256:" + "b" * 64)], "name", id="its name"),
        pytest.param([row("other")], "digest", id="the key itself"),
    ],
)
def test_a_key_of_the_configuration_is_not_written_a_second_time(config, rows, place):
    """The gateway would refuse the whole file, and every key in it."""
    config.write_text(f'{POOLS}[[auth.keys]]\nname = "own"\npool = "p"\ndigest = "{DIGEST}"\n')
    keys = KeyFile.of(config)

    with pytest.raises(ConfigError) as refused:
        add(keys, *rows)

    assert [one.place for one in refused.value.faults] == [f"auth.keys[0].{place}"]
    assert not keys.path.exists()


def test_a_configuration_with_a_fault_does_not_keep_keys_from_being_made(config):
    config.write_text(f"{POOLS}[auth]\nkeys = 3\n")

    add(KeyFile.of(config), row())


def test_a_file_that_is_broken_is_not_overwritten(keys):
    keys.path.write_text("what?")

    with pytest.raises(ConfigError):
        add(keys, row())

    assert keys.path.read_text() == "what?"


def test_a_folder_that_cant_be_written_is_told(config, tmp_path):
    config.write_text('[auth]\nkeys_file = "none/keys.toml"\n' + POOLS)

    with pytest.raises(ConfigError, match="can't be written"):
        add(KeyFile.of(config), row())


def test_the_configuration_says_where_the_keys_are(config):
    config.write_text('[auth]\nkeys_file = "clients.toml"\n')

    keys = KeyFile.of(config)

    assert keys.path.name == "clients.toml"
    assert keys.pools == {"cluster"}
    assert keys.rows() == []


def test_two_commands_at_once_take_turns(keys):
    rows = [row(f"key-{at}", f"sha256:{at:064x}") for at in range(20)]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda one: add(keys, one), rows))

    assert len(keys.rows()) == 20


def test_a_file_that_is_no_table_of_keys_has_no_rows(keys):
    keys.path.write_text("auth = 3\n")

    assert keys.rows() == []
