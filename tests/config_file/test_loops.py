import socket

import pytest

from tests.config_file.texts import NODE, faults_of


def gateway(listen=":8000", metrics=":9090"):
    return f'[gateway]\nlisten = "{listen}"\nmetrics_listen = "{metrics}"\n'


def node(url):
    return f'[[nodes]]\nurl = "{url}"\nname = "a"\n'


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000",
        "http://localhost:8000/v1",
        "https://[::1]:8000",
        "http://0.0.0.0:8000/prefix",
        f"http://{socket.gethostname()}:8000",
        "http://127.0.0.1:9090",
    ],
)
def test_a_node_that_is_the_gateway_itself_is_refused(url):
    faults = faults_of(gateway() + node(url))

    assert list(faults) == ["nodes[0].url"]
    assert "is this gateway itself" in faults["nodes[0].url"].message


def test_an_account_that_is_the_gateway_itself_is_refused():
    text = gateway() + NODE + '[[accounts]]\nname = "p"\nurl = "http://localhost:8000"'

    assert list(faults_of(text)) == ["accounts[0].url"]


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:8001", "http://127.0.0.1:8000"),
        ("10.0.0.9:8000", "http://127.0.0.1:8000"),
        (":8000", "http://198.51.100.7:8000"),
        ("unix:/run/x.sock", "http://127.0.0.1:8000"),
    ],
)
def test_another_server_of_this_machine_is_no_loop(listen, url):
    assert faults_of(gateway(listen) + node(url)) == {}


def test_metrics_have_an_address_of_their_own():
    faults = faults_of(gateway(":8000", ":8000") + NODE)

    assert faults["gateway.metrics_listen"].message == ":8000 is an address of gateway.listen"


def test_ports_that_the_system_chooses_never_collide():
    listen = "127.0.0.1:0"

    assert faults_of(gateway(listen, listen) + NODE) == {}


def test_a_gateway_has_to_listen_somewhere():
    assert list(faults_of("[gateway]\nlisten = []\n" + NODE)) == ["gateway.listen"]


def test_metrics_may_be_served_nowhere():
    assert faults_of("[gateway]\nmetrics_listen = []\n" + NODE) == {}
