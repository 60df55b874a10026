import json

import pytest

from llmgw.config_file.changes import diff, diff_rendered, until_restart
from llmgw.config_file.faults import Note
from llmgw.config_file.rendering import render
from tests.config_file.texts import ACCOUNT, DIGEST, NODE, config_of

KEY = f'[[auth.keys]]\nname = "k"\ndigest = "{DIGEST}"\n'
B = '[[nodes]]\nurl = "http://10.0.0.6:8000"\nname = "b"\n'
POOL = '[[pools]]\nname = "cluster"\n[[pools.assignments]]\nupstream = "a"\n'


def changes(old, new):
    return diff(config_of(old), config_of(new))


@pytest.mark.parametrize("text", ["", NODE + ACCOUNT + KEY + POOL])
def test_the_same_configuration_changes_nothing(text):
    assert changes(text, text) == []


def test_another_way_to_write_it_changes_nothing():
    written = '[gateway]\nhealth_interval = "3000ms"\nmax_request_body_bytes = 33554432\n'

    assert changes(NODE, written + NODE.replace(":8000", ":8000/v1/")) == []


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        pytest.param(
            "",
            '[gateway]\nhealth_interval = "5s"',
            ['gateway.health_interval: "3s" -> "5s"'],
            id="a setting",
        ),
        pytest.param(
            "",
            '[gateway]\nlisten = [":1", ":2"]',
            ['gateway.listen: ":8000" -> [":1", ":2"]'],
            id="addresses",
        ),
        pytest.param(
            "",
            '[database]\nurl = "sqlite://"',
            ['database.url: none -> "sqlite://"; takes effect at the next start'],
            id="what a reload can't change",
        ),
        pytest.param(
            NODE,
            NODE + B,
            ['node "b" (http://10.0.0.6:8000) added, starts healthy and untried'],
            id="a node more",
        ),
        pytest.param(
            NODE + B,
            NODE,
            ['node "b" (http://10.0.0.6:8000) removed, its running requests finish'],
            id="a node less",
        ),
        pytest.param(
            NODE,
            NODE + "drain = true",
            ['node "a" (http://10.0.0.5:8000): drain false -> true'],
            id="a node drained",
        ),
        pytest.param(
            NODE,
            NODE.replace('"a"', '"c"'),
            ['node "a" (http://10.0.0.5:8000): name "a" -> "c"'],
            id="a node renamed keeps its state",
        ),
        pytest.param(
            NODE,
            NODE.replace("10.0.0.5", "10.0.0.9"),
            [
                'node "a" (http://10.0.0.5:8000) removed, its running requests finish',
                'node "a" (http://10.0.0.9:8000) added, starts healthy and untried',
            ],
            id="a node moved is another one",
        ),
        pytest.param(
            NODE,
            NODE + 'ring = "x"\n[[models.available]]\nname = "m"\nring = "x"',
            ['node "a" (http://10.0.0.5:8000): ring none -> "x"', 'model "m" added'],
            id="a ring and its model",
        ),
        pytest.param(
            NODE, NODE + ACCOUNT, ['account "p" added, listed at once'], id="an account more"
        ),
        pytest.param(
            NODE + B + POOL,
            NODE + B + POOL + '[[pools.assignments]]\nupstream = "b"',
            ['pool "cluster": assignments ["a"] -> ["a", "b"]'],
            id="an assignment more",
        ),
        pytest.param(
            NODE,
            NODE + KEY,
            [
                "auth: added, clients without a key are refused",
                'auth.keys_file: none -> "keys.toml"',
                'key "k" added',
            ],
            id="closed",
        ),
        pytest.param(
            NODE + KEY,
            NODE,
            [
                "auth: removed, every client is let in unless there is a keys file",
                'auth.keys_file: "keys.toml" -> none',
                'key "k" removed, unknown from then on',
            ],
            id="opened",
        ),
    ],
)
def test_one_line_for_each_change(old, new, lines):
    assert changes(old, new) == lines


def test_a_new_value_of_a_secret_is_said_but_not_shown():
    text = NODE + 'api_key_env = "KEY"\n' + ACCOUNT + 'headers = { x-a = "CANARY-1" }'
    old = config_of(text, environ={"KEY": "CANARY-2"})
    new = config_of(text.replace("CANARY-1", "CANARY-3"), environ={"KEY": "CANARY-4"})

    assert diff(old, new) == [
        'upstream "a": its key or a header has another value',
        'upstream "p": its key or a header has another value',
    ]


def test_what_the_running_gateway_wrote_can_be_compared():
    written = json.loads(json.dumps(render(config_of(NODE))))

    assert diff_rendered(written, render(config_of(NODE))) == []
    assert len(diff_rendered(written, render(config_of(NODE + B)))) == 1


@pytest.mark.parametrize("odd", [{"nodes": 5}, {"nodes": ["x"]}, {"gateway": []}, {"x": {"y": 1}}])
def test_what_another_version_wrote_does_not_break_it(odd):
    assert all(isinstance(line, str) for line in diff_rendered(odd, render(config_of(NODE))))


@pytest.mark.parametrize(
    ("fresh", "notes"),
    [
        pytest.param('[database]\nkeep = "7d"', (), id="what a reload can change"),
        pytest.param(
            '[database]\nurl = "sqlite://"\nkeep = "7d"',
            (Note("database.url", "takes effect at the next start"),),
            id="what only a start takes",
        ),
    ],
)
def test_a_reload_goes_as_far_as_it_can_and_says_so(fresh, notes):
    taken, told = until_restart(config_of(NODE), config_of(NODE + fresh))

    assert taken == config_of(NODE + '[database]\nkeep = "7d"')
    assert told == notes
