import pytest

from llmgw.core.config import Account, BaseUrl, KeySource, Node
from tests.config_file.texts import ACCOUNT, NODE, config_of, faults_of, notes_of


def names(text):
    return [node.name for node in config_of(text).nodes]


def test_a_node_with_every_key():
    text = """
        [[nodes]]
        url = "https://h:8443/team"
        name = "gpu-1"
        ring = "big"
        health_path = "/ping"
        metrics_port = 9400
        api_key_env = "KEY"
        routes = ["/v1/embeddings"]
        websocket = false
        drain = true
    """

    [node] = config_of(text, environ={"KEY": "s3cret"}).nodes

    assert node == Node(
        name="gpu-1",
        url=BaseUrl("https", "h", 8443, "/team"),
        ring="big",
        health_path="/ping",
        metrics_port=9400,
        credential=(("authorization", "Bearer s3cret"),),
        routes=frozenset({"/v1/embeddings"}),
        websocket=False,
        drain=True,
        key_source=KeySource("api_key_env", "KEY"),
    )
    assert "s3cret" not in repr(node)


def test_an_account_with_every_key():
    text = """
        [[accounts]]
        name = "p"
        url = "https://api.example.org/v1"
        api_key_file = "key"
        auth = "x-api-key"
        headers = { X-Team = "CANARY" }
        models = ["m"]
        websocket = true
        hide_messages = true
        routes = ["/v1/messages"]
    """

    [account] = config_of(text, files={"/etc/llmgw/key": b"s3cret\n"}).accounts

    assert account == Account(
        name="p",
        url=BaseUrl("https", "api.example.org", 443),
        auth="x-api-key",
        credential=(("x-api-key", "s3cret"),),
        headers=(("x-team", "CANARY"),),
        models=("m",),
        websocket=True,
        hide_messages=True,
        routes=frozenset({"/v1/messages"}),
        key_source=KeySource("api_key_file", "key"),
    )
    assert "s3cret" not in repr(account)
    assert "CANARY" not in repr(account)


def test_a_node_without_health_checks():
    [node] = config_of('[[nodes]]\nurl = "http://h"\nhealth = "off"').nodes

    assert node.health_path is None


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        pytest.param('[[nodes]]\nurl = "http://h:1"', ["h:1"], id="host and port"),
        pytest.param('[[nodes]]\nurl = "http://h"', ["h:80"], id="the port also if it is usual"),
        pytest.param('[[nodes]]\nurl = "http://[::1]:1"', ["[::1]:1"], id="IPv6"),
        pytest.param('[[nodes]]\nip = "10.0.0.5"', ["10.0.0.5"], id="the older form: the ip"),
        pytest.param(
            '[[nodes]]\nip = "10.0.0.5"\n[[nodes]]\nip = "10.0.0.5"\nvllm_port = 8001',
            ["10.0.0.5:8000", "10.0.0.5:8001"],
            id="two of the older form on one host",
        ),
        pytest.param(
            '[[nodes]]\nurl = "http://h:1/a"\n[[nodes]]\nurl = "http://h:1/b"',
            ["h:1/a", "h:1/b"],
            id="two prefixes of one host",
        ),
    ],
)
def test_the_name_of_a_node_that_has_none(tables, expected):
    assert names(tables) == expected


def test_the_older_form_of_a_node():
    text = '[[nodes]]\nip = "10.0.0.5"\nname = "n1"\nvllm_port = 8010\nmetrics_port = 9400'

    [node] = config_of(text).nodes

    assert (node.name, node.url) == ("n1", BaseUrl("http", "10.0.0.5", 8010))


def test_a_url_that_ends_in_v1_is_taken_without_it_and_that_is_said():
    text = '[[nodes]]\nurl = "http://10.0.0.5:8000/v1"\nname = "a"'

    assert config_of(text).nodes[0].url == BaseUrl("http", "10.0.0.5", 8000)
    assert notes_of(text)["nodes[0].url"].hint == 'taken as "http://10.0.0.5:8000"'


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param('[[nodes]]\nname = "a"', "nodes[0].url", "is missing", id="no url"),
        pytest.param('[[accounts]]\nname = "a"', "accounts[0].url", "is missing", id="no url"),
        pytest.param(
            '[[accounts]]\nurl = "http://h"', "accounts[0].name", "is missing", id="no name"
        ),
        pytest.param(
            NODE + 'ip = "10.0.0.5"',
            "nodes[0].ip",
            "url is given too: only one can count",
            id="url and ip",
        ),
        pytest.param(
            NODE + "vllm_port = 8000",
            "nodes[0].vllm_port",
            "belongs to ip; the port stands in url",
            id="url and vllm_port",
        ),
        pytest.param(
            "[[nodes]]\nvllm_port = 8000", "nodes[0].url", "is missing", id="vllm_port alone"
        ),
        pytest.param(
            NODE + 'health = "off"\nhealth_path = "/x"',
            "nodes[0].health_path",
            'can\'t be asked while health is "off"',
            id="a path for no check",
        ),
        pytest.param(
            NODE + '[[nodes]]\nurl = "http://h"\nname = "a"',
            "nodes[1].name",
            '"a" is the name of nodes[0] too',
            id="two nodes of one name",
        ),
        pytest.param(
            NODE + ACCOUNT.replace('"p"', '"a"'),
            "accounts[0].name",
            '"a" is the name of nodes[0] too',
            id="a node and an account of one name",
        ),
        pytest.param(
            '[[nodes]]\nurl = "http://h:1"\nname = "g:1"\n[[nodes]]\nurl = "http://g:1"',
            "nodes[1].name",
            '"g:1" is the name of nodes[0] too',
            id="a name that is another's default",
        ),
        pytest.param(
            NODE + '[[nodes]]\nip = "10.0.0.5"',
            "nodes[1].url",
            "http://10.0.0.5:8000 is the URL of nodes[0] too",
            id="one server twice",
        ),
        pytest.param(
            NODE + 'api_key = "CANARY"',
            "nodes[0].api_key",
            "secrets are never in this file: use api_key_env or api_key_file",
            id="a secret in the file",
        ),
        pytest.param(
            NODE + '[[nodes]]\nip = "http://h"',
            "nodes[1].ip",
            "must be an address without scheme and port",
            id="a URL for an ip",
        ),
    ],
)
def test_a_faulty_upstream(text, place, message):
    faults = faults_of(text)

    assert list(faults) == [place]
    assert faults[place].message == message


def test_a_node_whose_url_is_faulty_is_not_also_said_to_lack_it():
    assert list(faults_of('[[nodes]]\nurl = "x"\nname = "a"')) == ["nodes[0].url"]
    assert list(faults_of('[[nodes]]\nurl = "x"\nip = "h"')) == ["nodes[0].url", "nodes[0].ip"]


def test_a_route_that_is_nearly_one():
    faults = faults_of(NODE + 'routes = ["/v1/chat/completion"]')

    assert faults["nodes[0].routes"].hint == 'did you mean "/v1/chat/completions"?'
