import socket
from pathlib import Path

import pytest

from llmgw.daemon.places import Places
from llmgw.daemon.source import FileSource, NodesSource
from llmgw.daemon.start import StartRefused, prepare_launch

NODE = "http://127.0.0.1:9"


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "state", tmp_path / "run")


def nodes(places, listen="127.0.0.1:0"):
    return NodesSource((NODE,), places.state, {"listen": listen, "metrics_listen": "127.0.0.1:0"})


def test_a_launch_has_read_checked_and_bound(places):
    launch = prepare_launch(nodes(places), places, {"WATCHDOG_USEC": "2000000"})

    assert str(launch.loaded.config.nodes[0].url) == NODE
    assert places.state.is_dir()
    assert launch.watchdog == 1.0
    assert len(launch.opening.http.opened) == len(launch.opening.metrics.opened) == 1
    launch.opening.undo()


def test_every_fault_of_a_file_has_its_line(places, tmp_path):
    path = tmp_path / "llmgw.toml"
    path.write_text('[gateway]\nlistn = 1\n[log]\nlevel = "loud"\n[[nodes]]\nurl = "http://a:1"\n')

    with pytest.raises(StartRefused) as refused:
        prepare_launch(FileSource(path, {}, places.state), places, {})

    assert len(refused.value.lines) == 2
    assert all(line.startswith(f"{path}: ") for line in refused.value.lines)


def test_a_file_that_is_not_there_is_named_once(places):
    with pytest.raises(StartRefused) as refused:
        prepare_launch(FileSource(Path("/no/such/file"), {}, places.state), places, {})

    (line,) = refused.value.lines
    assert line.count("/no/such/file") == 1


def test_a_taken_address_is_refused_by_its_key(places):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(StartRefused, match=r"^gateway\.listen: "):
            prepare_launch(nodes(places, address), places, {})


def test_the_environment_says_nothing_of_sockets_any_more(places):
    environment = {"LISTEN_FDS": "1", "LISTEN_PID": "1", "A": "b"}

    launch = prepare_launch(nodes(places), places, environment)

    assert environment == {"A": "b"}
    launch.opening.undo()
