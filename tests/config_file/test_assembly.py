import pytest

from llmgw.config_file.assembly import SECTIONS
from llmgw.core.config import Config, ModelConfig, ModelsConfig, Pool
from tests.config_file.texts import DIGEST, NODE, SCRYPT, config_of, faults_of

USER = '[[admin.users]]\nname = "root"\n'

OLDER = """
[cluster]
name = "prod"

[gateway]
listen = ":8000"
metrics_listen = ":9090"
health_interval = "3s"
health_fail_threshold = 3
max_buffered_response_bytes = 8388608
max_request_body_bytes = 33554432

[[nodes]]
ip = "10.0.0.5"
name = "n1"
vllm_port = 8000
metrics_port = 9400
ring = "big"

[[nodes]]
ip = "10.0.0.6"

[models]
default = "small"

[[models.available]]
name = "large"
pipeline_stages = 2
ring = "big"

[[models.available]]
name = "small"

[provision]
image = "vllm"
hosts = ["10.0.0.5"]
[provision.nested]
x = 1
"""


def test_an_empty_file_is_all_defaults():
    assert config_of("") == Config(pools=(Pool("cluster", ()),))


def test_the_older_gateways_file_loads_unchanged():
    config = config_of(OLDER)

    assert config.cluster.name == "prod"
    assert [(node.name, str(node.url), node.ring) for node in config.nodes] == [
        ("n1", "http://10.0.0.5:8000", "big"),
        ("10.0.0.6", "http://10.0.0.6:8000", None),
    ]
    assert config.models.default == "small"
    assert config.models.available == (ModelConfig("large", "big"), ModelConfig("small"))
    assert config.gateway == Config().gateway


EMPTY_STRINGS = """
[[nodes]]
ip = "10.0.0.5"
name = ""
ring = ""

[models]
default = ""

[[models.available]]
name = "large"
ring = ""
"""


def test_an_empty_string_of_the_older_gateways_file_says_nothing():
    config = config_of(EMPTY_STRINGS)

    assert [(node.name, node.ring) for node in config.nodes] == [("10.0.0.5", None)]
    assert config.models == ModelsConfig(None, (ModelConfig("large"),))


def test_all_faults_of_all_sections_are_told_at_once():
    text = """
        [gateway]
        listn = ":8000"
        health_interval = 3
        [routing]
        plan_size = 0
        [limit]
        queue = 5
        [[nodes]]
        url = "http://h?x"
        [[models.available]]
        ring = "x"
        [[auth.keys]]
        name = "k"
        digest = "x"
        [[pools]]
        name = "p"
        [[pools.assignments]]
        upstream = "nobody"
    """

    faults = faults_of(text)

    assert set(faults) == {
        "gateway.listn",
        "gateway.health_interval",
        "routing.plan_size",
        "limit",
        "nodes[0].url",
        "models.available[0].name",
        "auth.keys[0].digest",
        "pools[0].assignments[0].upstream",
    }
    assert faults["gateway.listn"].hint == 'did you mean "listen"?'
    assert faults["limit"].hint == 'did you mean "limits"?'


def _raw(section, key):
    """The section with one key of a type that no kind takes, and what it needs beside it."""
    fields = {one.key for one in section.fields if one.required} - {key}
    needed = {"name": '"x"', "digest": f'"{DIGEST}"', "upstream": '"a"', "url": '"http://h"'}
    lines = [f"{one} = {needed[one]}" for one in sorted(fields)]
    head = f"[[{section.path}]]" if section.many else f"[{section.path}]"
    parent = '[[pools]]\nname = "cluster"\n' if section.path == "pools.assignments" else ""
    return "\n".join([parent, head, *lines, f"{key} = 1979-05-27T07:32:00Z"])


@pytest.mark.parametrize(
    ("section", "key"),
    [
        pytest.param(section, one.key, id=f"{section.path}.{one.key}")
        for section in SECTIONS
        for one in section.fields
        if one.key != "expires_at"  # the one key that takes a date and time
    ],
)
def test_each_key_is_known_and_refuses_a_wrong_type_at_its_place(section, key):
    place = {"pools.assignments": "pools[0].assignments[0]"}.get(
        section.path, f"{section.path}[0]" if section.many else section.path
    )

    faults = faults_of(_raw(section, key))

    assert f"{place}.{key}" in faults
    assert faults[f"{place}.{key}"].message not in ("unknown key", "is missing")


def test_an_auth_section_alone_closes():
    assert config_of("").auth is None
    assert config_of("[auth]").auth is not None


def test_operators():
    text = NODE + USER + f'token_digest = "{DIGEST}"\npools = ["cluster"]'

    [user] = config_of(text).admin.users

    assert (user.name, user.token_digest, user.pools) == ("root", "a" * 64, ("cluster",))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param(USER, "admin.users[0]", "needs a password or a token_digest", id="no way in"),
        pytest.param(
            USER + f'password = "{SCRYPT}"\npools = ["clustre"]',
            "admin.users[0].pools",
            'there is no pool "clustre"',
            id="an unknown pool",
        ),
        pytest.param(
            (USER + f'password = "{SCRYPT}"\n') * 2,
            "admin.users[1].name",
            "is that of admin.users[0] too",
            id="one name twice",
        ),
        pytest.param(
            '[[models.available]]\nname = "m"\n' * 2,
            "models.available[1].name",
            "is that of models.available[0] too",
            id="one model twice",
        ),
    ],
)
def test_tables_that_do_not_fit_each_other(text, place, message):
    faults = faults_of(NODE + text)

    assert list(faults) == [place]
    assert faults[place].message == message
