import pytest

from llmgw.config_file import ConfigError, FileMissing, load_keys
from llmgw.core.config import KeyConfig
from tests.config_file.texts import DIGEST, NODE, config_of, faults_of

OTHER = "sha256:" + "b" * 64


def key(name="k", digest=DIGEST, extra=""):
    return f'[[auth.keys]]\nname = "{name}"\ndigest = "{digest}"\n{extra}\n'


@pytest.fixture
def keys_file(tmp_path):
    def write(text):
        path = tmp_path / "keys.toml"
        path.write_text(text)
        return path

    return write


def faults(path, **options):
    with pytest.raises(ConfigError) as raised:
        load_keys(path, **options)
    return [(fault.place, fault.message) for fault in raised.value.faults]


def test_a_key_has_defaults_for_all_but_name_and_digest(keys_file):
    assert load_keys(keys_file(key())) == (KeyConfig("k", "a" * 64),)


def test_a_key_with_every_member(keys_file):
    extra = """
        pool = "mine"
        models = ["gpt-*"]
        labels = { team = "search" }
        expires_at = 2030-01-31T00:00:00Z
        max_in_flight = 5
        explain = true
    """

    [found] = load_keys(keys_file(key(extra=extra)))

    assert found == KeyConfig(
        name="k",
        digest="a" * 64,
        pool="mine",
        models=("gpt-*",),
        labels=(("team", "search"),),
        expires_at=1896048000.0,
        max_in_flight=5,
        explain=True,
    )


@pytest.mark.parametrize("text", ["", "[auth]", "[auth]\nkeys = []"])
def test_an_empty_file_has_no_keys(keys_file, text):
    assert load_keys(keys_file(text)) == ()


def test_a_missing_file_is_told_apart(tmp_path):
    with pytest.raises(FileMissing):
        load_keys(tmp_path / "keys.toml")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            key(digest="CANARY"),
            [
                (
                    "keys.toml: auth.keys[0].digest",
                    'must be "sha256:" and 64 lower-case hex digits',
                )
            ],
            id="the token itself",
        ),
        pytest.param(
            key() + key(digest=OTHER),
            [("keys.toml: auth.keys[1].name", "is that of auth.keys[0] too")],
            id="a name twice",
        ),
        pytest.param(
            key() + key("other"),
            [("keys.toml: auth.keys[1].digest", "is that of auth.keys[0] too")],
            id="a digest twice",
        ),
        pytest.param(
            key(extra='token = "CANARY"'),
            [
                (
                    "keys.toml: auth.keys[0].token",
                    "only a key's digest is kept: llmgw key new makes one",
                )
            ],
            id="a token beside the digest",
        ),
        pytest.param("[gateway]", [("keys.toml: gateway", "unknown section")], id="a section"),
        pytest.param(
            '[auth]\nkeys_file = "x"',
            [("keys.toml: auth.keys_file", "means something in the configuration only")],
            id="another keys file",
        ),
    ],
)
def test_a_faulty_keys_file(keys_file, text, found):
    assert faults(keys_file(text)) == found


def test_a_key_of_a_pool_that_there_is_not(keys_file):
    path = keys_file(key(extra='pool = "mime"') + key("other", OTHER))

    assert faults(path, pools=["mine"]) == [
        ("keys.toml: auth.keys[0].pool", 'there is no pool "mime"'),
        ("keys.toml: auth.keys[1]", 'there is no pool "cluster"'),
    ]


def test_a_key_that_the_configuration_has_already(keys_file):
    taken = (KeyConfig("k", "b" * 64), KeyConfig("x", "a" * 64))

    assert faults(keys_file(key()), besides=taken) == [
        ("keys.toml: auth.keys[0].name", "is that of a key in the configuration too"),
        ("keys.toml: auth.keys[0].digest", "is that of a key in the configuration too"),
    ]


def test_keys_of_the_configuration():
    config = config_of(NODE + key() + key("other", OTHER))

    assert config.auth is not None
    assert [one.name for one in config.auth.keys] == ["k", "other"]


def test_a_key_of_the_configuration_needs_its_pool():
    found = faults_of(NODE + key(extra='pool = "clustre"'))

    assert found["auth.keys[0].pool"].hint == 'did you mean "cluster"?'
