from pathlib import Path

import pytest

from llmgw.daemon.places import (
    Places,
    PlaceUnusable,
    find_places,
    find_running,
    prepare,
    write_atomically,
)


@pytest.mark.parametrize(
    ("environment", "places"),
    [
        pytest.param(
            {"STATE_DIRECTORY": "/var/lib/llmgw", "RUNTIME_DIRECTORY": "/run/llmgw"},
            Places(Path("/var/lib/llmgw"), Path("/run/llmgw")),
            id="as the service manager says",
        ),
        pytest.param(
            {"RUNTIME_DIRECTORY": "/run/a:/run/b", "STATE_DIRECTORY": "/s"},
            Places(Path("/s"), Path("/run/a")),
            id="the first of several",
        ),
        pytest.param(
            {"HOME": "/home/me"},
            Places(Path("/home/me/.local/state/llmgw"), Path("/home/me/.local/state/llmgw/run")),
            id="the user's own",
        ),
    ],
)
def test_where_things_lie(environment, places):
    assert find_places(environment) == places


def test_a_command_finds_the_service_when_the_user_runs_none(tmp_path, monkeypatch):
    monkeypatch.setattr("llmgw.daemon.places.SYSTEM_RUNTIME", tmp_path / "service")
    environment = {"STATE_DIRECTORY": str(tmp_path / "own")}
    assert find_running(environment).runtime == tmp_path / "own" / "run"

    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "llmgw.pid").write_text("1")

    assert find_running(environment).runtime == tmp_path / "service"


def test_both_folders_are_made(tmp_path):
    places = Places(tmp_path / "a" / "state", tmp_path / "b" / "run")

    prepare(places, keeps_state=True)
    prepare(places, keeps_state=True)

    assert places.state.stat().st_mode & 0o777 == 0o700
    assert places.runtime.is_dir()


def test_a_state_folder_that_cannot_be_made_is_told_with_its_key(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(PlaceUnusable) as failed:
        prepare(Places(tmp_path / "file" / "state", tmp_path / "run"), keeps_state=True)

    assert str(failed.value).startswith("database.url: the state folder (STATE_DIRECTORY)")


def test_a_state_folder_that_nothing_is_kept_in_is_not_needed(tmp_path):
    (tmp_path / "file").touch()

    prepare(Places(tmp_path / "file" / "state", tmp_path / "run"), keeps_state=False)

    assert (tmp_path / "run").is_dir()


def test_a_folder_that_may_not_be_written_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda folder, mode: folder != tmp_path / "run")

    with pytest.raises(PlaceUnusable, match=r"^RUNTIME_DIRECTORY: .* permission denied$"):
        prepare(Places(tmp_path / "state", tmp_path / "run"), keeps_state=True)


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "llmgw.pid"

    write_atomically(path, "1")
    write_atomically(path, "2")

    assert path.read_text() == "2"
    assert list(tmp_path.iterdir()) == [path]
