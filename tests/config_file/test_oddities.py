import pytest

from llmgw.config_file.addresses import parse_listen
from llmgw.config_file.faults import Report
from llmgw.config_file.oddities import note_open_access
from tests.config_file.texts import ACCOUNT, NODE, notes_of

RINGED = NODE + 'ring = "big"\n'
MODEL = '[[models.available]]\nname = "m"\n'


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param(
            "",
            "nodes",
            "there are no nodes and no accounts: every request is refused",
            id="nothing to serve with",
        ),
        pytest.param(
            NODE + ACCOUNT,
            "accounts[0]",
            '"p" is in no pool and is never asked',
            id="an account in no pool",
        ),
        pytest.param(
            NODE + '[[pools]]\nname = "cluster"\n',
            "nodes[0]",
            '"a" is in no pool and is never asked',
            id="a node in no pool",
        ),
        pytest.param(
            NODE + MODEL + 'ring = "big"',
            "models.available[0].ring",
            'no node is in the ring "big": nobody could serve "m"',
            id="a ring that no node is in",
        ),
        pytest.param(
            NODE.replace('"a"', '"b"').replace("10.0.0.5", "h") + RINGED,
            "nodes[1].ring",
            'no model is in the ring "big": this node is never asked',
            id="a ring that no model is in",
        ),
        pytest.param(
            RINGED + MODEL,
            "models.available[0]",
            'nobody could serve "m": it has no ring, and every node is in one',
            id="a model without a ring among ringed nodes",
        ),
        pytest.param(
            RINGED + '[models]\ndefault = "d"',
            "models.default",
            'nobody could serve "d": it has no ring, and every node is in one',
            id="a default without a ring among ringed nodes",
        ),
        pytest.param(
            NODE + '[database]\nurl = "postgresql://u:CANARY@h/x"',
            "database.url",
            "holds a password, and secrets do not belong in this file",
            id="a password in the file",
        ),
        pytest.param(
            NODE + "[provision]\nimage = 5",
            "provision",
            "is the older gateway's and is ignored",
            id="a section of the older gateway",
        ),
    ],
)
def test_what_is_odd_is_said_and_the_file_is_loaded(text, place, message):
    notes = notes_of(text)

    assert notes[place].message == message
    assert "CANARY" not in "".join(map(str, notes.values()))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(NODE + MODEL, id="a plain node and a model"),
        pytest.param(RINGED + MODEL + 'ring = "big"', id="a ring and its model"),
        pytest.param(
            '[models]\ndefault = "m"\n' + RINGED + MODEL + 'ring = "big"',
            id="a default that is in a ring",
        ),
        pytest.param(NODE + '[models]\ndefault = "nobody-has-it"', id="a model nobody has yet"),
        pytest.param(
            NODE + '[database]\nurl = "postgresql://u@h/x"', id="a database without a password"
        ),
    ],
)
def test_nothing_odd(text):
    assert notes_of(text) == {}


def test_a_model_without_a_ring_may_be_an_accounts():
    pool = '[[pools]]\nname = "cluster"\n[[pools.assignments]]\nupstream = "p"\n'
    pool += '[[pools.assignments]]\nupstream = "a"\n'

    assert "models.available[0]" not in notes_of(RINGED + ACCOUNT + MODEL + pool)


def test_a_ring_that_is_nearly_one():
    text = RINGED + MODEL + 'ring = "bigg"'

    assert notes_of(text)["models.available[0].ring"].hint == 'did you mean "big"?'


@pytest.mark.parametrize(
    ("listens", "message"),
    [
        (
            [":8000", "127.0.0.1:1"],
            "open access on a public address: whoever reaches :8000 may use every node",
        ),
        (
            ["127.0.0.1:8000", "unix:/x"],
            "open access: there is no [auth] and no keys file",
        ),
    ],
)
def test_open_access_is_always_said_and_louder_where_others_reach_it(listens, message):
    report = Report()

    note_open_access([parse_listen(one) for one in listens], report)

    [note] = report.notes
    assert (note.place, note.message) == ("auth", message)


def test_open_access_without_a_file_is_closed_by_one():
    report = Report()

    note_open_access([parse_listen(":8000")], report, has_file=False)

    assert report.notes[0].hint == "keys need a file, which llmgw init writes"
