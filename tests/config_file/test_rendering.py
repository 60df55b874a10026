import json

from llmgw.config_file.rendering import render
from llmgw.config_file.writing import write_document
from llmgw.core.config import Config
from tests.config_file.texts import DIGEST, NODE, config_of

EVERYTHING = """
[gateway]
listen = [":8001", "unix:/run/x.sock"]
[routing]
header_timeout = "90s"
[limits]
max_in_flight = 10
[models]
default = "m"
[[models.available]]
name = "m"
ring = "big"
[[nodes]]
url = "http://h:1/team"
name = "a"
ring = "big"
api_key_env = "KEY"
routes = ["/v1/responses", "/v1/embeddings"]
websocket = true
metrics_port = 9400
drain = true
[[nodes]]
url = "http://h:2"
health = "off"
[[accounts]]
name = "p"
url = "https://api.example.org"
api_key_file = "key"
auth = "api-key"
models = ["m"]
hide_messages = true
[[pools]]
name = "cluster"
strategy = "rendezvous"
cache_affinity = false
max_in_flight = 3
[[pools.assignments]]
upstream = "a"
"""
SECRETS = {"environ": {"KEY": "CANARY-1"}, "files": {"/etc/llmgw/key": b"CANARY-2"}}
HASHED = f"scrypt$16384$8$5$CANARY5CANARY5CANARY5CAN${'A' * 43}="


def test_a_rendering_loads_to_the_same_configuration():
    config = config_of(EVERYTHING, **SECRETS)

    assert config_of(write_document(render(config)), **SECRETS) == config


def test_a_rendering_of_defaults_loads_to_the_defaults():
    config = config_of("")

    assert config_of(write_document(render(config))) == config


def test_every_default_is_told():
    shown = render(config_of(""))

    assert shown["gateway"]["health_interval"] == "3s"
    assert shown["gateway"]["max_request_body_bytes"] == "32MiB"
    assert shown["streams"]["first_event_timeout"] == "off"


def test_a_rendering_is_json():
    shown = render(config_of(EVERYTHING, **SECRETS))

    assert json.loads(json.dumps(shown)) == shown


def test_no_secret_is_rendered():
    text = (
        EVERYTHING
        + f"""
        [database]
        url = "postgresql://u:CANARY-3@h/x"
        [[accounts]]
        name = "q"
        url = "https://q.example.org"
        headers = {{ x-key = "CANARY-4" }}
        [[auth.keys]]
        name = "k"
        digest = "{DIGEST}"
        [[admin.users]]
        name = "root"
        password = "{HASHED}"
        token_digest = "{DIGEST}"
        """
    )

    shown = json.dumps(render(config_of(text, **SECRETS)))

    assert "CANARY" not in shown
    assert "a" * 17 not in shown
    assert '"x-key": "***"' in shown


def test_a_key_shows_what_tells_it_from_others():
    config = config_of(NODE + f'[[auth.keys]]\nname = "k"\ndigest = "{DIGEST}"')

    [key] = render(config)["auth"]["keys"]

    assert key["digest"] == f"sha256:{'a' * 16}***"
    assert "expires_at" not in key


def test_an_open_gateway_shows_no_auth():
    assert "auth" not in render(Config())
    assert "admin" not in render(Config())
