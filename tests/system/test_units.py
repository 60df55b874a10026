"""What the units promise, checked against the configuration's defaults. No systemd is needed."""

import configparser
from pathlib import Path

import pytest

from llmgw.config_file.quantities import parse_duration
from llmgw.core.config import GatewayConfig

UNITS = Path(__file__).resolve().parents[2] / "systemd"


class Unit(configparser.RawConfigParser):
    """A unit file; a key that is given twice keeps its last value, which is enough here."""

    def __init__(self, name):
        super().__init__(strict=False, interpolation=None)
        self.optionxform = str
        self.read_string((UNITS / name).read_text())


@pytest.fixture(scope="module")
def service():
    return Unit("llmgw.service")["Service"]


@pytest.fixture(scope="module")
def door():
    return Unit("llmgw.socket")["Socket"]


def test_a_stop_waits_longer_than_the_drain(service):
    assert parse_duration(service["TimeoutStopSec"]) == GatewayConfig().drain_timeout + 30


def test_there_are_files_for_a_gateway_full_of_streams(service):
    assert service["LimitNOFILE"] == "65536"


def test_systemd_hears_of_readiness_from_the_main_process_only(service):
    assert service["Type"] == "notify"
    assert service["NotifyAccess"] == "main"
    assert parse_duration(service["WatchdogSec"]) > 0


def test_a_reload_is_a_command_that_knows_how_it_went(service):
    assert service["ExecReload"].split()[1] == "reload"
    assert service["ExecReload"].endswith(" $MAINPID")


def test_the_service_has_a_user_folders_and_a_restart_of_its_own(service):
    assert service["User"] == "llmgw"
    for kind in ("Configuration", "State", "Runtime"):
        assert service[f"{kind}Directory"] == "llmgw"
    assert service["RuntimeDirectoryPreserve"] == "restart"
    assert service["Restart"] == "on-failure"


def test_the_socket_is_the_default_address_and_named_as_the_program_expects(door):
    (listen,) = GatewayConfig().listen
    assert door["ListenStream"] == str(listen.port)
    assert door["FileDescriptorName"] == "http"
    assert door["Backlog"] == "4096"


def test_the_user_is_made_by_sysusers():
    lines = (UNITS / "llmgw.sysusers").read_text().splitlines()

    assert [line.split()[:2] for line in lines if not line.startswith("#")] == [["u", "llmgw"]]
