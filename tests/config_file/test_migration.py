import tomllib

from llmgw.config_file.migration import migrate
from llmgw.config_file.writing import write_document
from tests.config_file.test_assembly import EMPTY_STRINGS, OLDER
from tests.config_file.texts import NODE, config_of, notes_of


def migrated(text):
    return migrate(tomllib.loads(text), config_of(text))


def test_an_older_file_means_the_same_in_todays_form():
    fresh = write_document(migrated(OLDER))

    assert config_of(fresh) == config_of(OLDER)
    assert notes_of(fresh) == {}


def test_empty_strings_are_not_carried_over():
    assert migrated(EMPTY_STRINGS) == {
        "nodes": [{"name": "10.0.0.5", "url": "http://10.0.0.5:8000"}],
        "models": {"available": [{"name": "large"}]},
    }


def test_nothing_of_the_older_form_is_left():
    fresh = migrated(OLDER)

    assert "provision" not in fresh
    assert fresh["nodes"][1] == {"name": "10.0.0.6", "url": "http://10.0.0.6:8000"}
    assert fresh["models"]["available"][0] == {"name": "large", "ring": "big"}


def test_what_is_in_todays_form_stays_as_it_is():
    text = NODE + '[models]\ndefault = "m"\n[gateway]\nhealth_interval = "7s"'

    assert config_of(write_document(migrated(text))) == config_of(text)
    assert migrated("[cluster]") == {"cluster": {}}
