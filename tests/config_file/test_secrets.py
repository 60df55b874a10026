import pytest

from llmgw.config_file.faults import Report
from llmgw.config_file.reading import Row
from llmgw.config_file.secrets import MAX_KEY_BYTES, Secrets, read_start
from llmgw.config_file.written import NodeTable
from tests.config_file.texts import secrets


def credential(found: Secrets, auth="bearer", **keys):
    """The header, and the faults' places and messages."""
    report = Report()
    row = Row("nodes[0]", NodeTable(**keys), frozenset(keys), {})
    headers = found.credential(row, auth, report)
    return headers, [(fault.place, fault.message) for fault in report.faults]


def test_an_upstream_without_a_key_has_no_credential():
    assert credential(secrets()) == ((), [])


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ("bearer", ("authorization", "Bearer s3cret")),
        ("x-api-key", ("x-api-key", "s3cret")),
        ("api-key", ("api-key", "s3cret")),
    ],
)
def test_a_key_becomes_the_header_that_carries_it(auth, header):
    found = secrets({"KEY": "s3cret"})

    assert credential(found, auth, api_key_env="KEY") == ((header,), [])


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"s3cret", id="no line end"),
        pytest.param(b"s3cret\n", id="one line"),
        pytest.param(b"  s3cret \r\nsecond line\n", id="blanks, CRLF, more lines"),
        pytest.param(b"\xef\xbb\xbfs3cret\n", id="byte order mark"),
    ],
)
def test_the_first_line_of_a_key_file_counts(content):
    found = secrets(files={"/etc/llmgw/key": content})

    headers, faults = credential(found, api_key_file="key")

    assert headers == (("authorization", "Bearer s3cret"),)
    assert faults == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the first line of the file is empty"),
        (b"\ns3cret", "the first line of the file is empty"),
        (b"\xff\xfe", "the first line of the file is no text"),
        ("schlüssel€".encode(), "the key has characters that no HTTP header can carry"),
        (
            b"two\rlines",
            "the key has line breaks, control characters, blanks around it, or is empty",
        ),
    ],
)
def test_a_key_that_no_header_can_carry(content, message):
    found = secrets(files={"/etc/llmgw/key": content})

    headers, faults = credential(found, api_key_file="key")

    assert headers == ()
    assert faults == [("nodes[0].api_key_file", message)]


@pytest.mark.parametrize(
    ("environ", "name", "message"),
    [
        ({}, "KEY", "the environment variable KEY is not set, or empty"),
        ({"KEY": " "}, "KEY", "the environment variable KEY is not set, or empty"),
        ({}, "sk-CANARY", "must be the name of an environment variable, not the key itself"),
    ],
)
def test_an_environment_variable_that_is_none(environ, name, message):
    headers, faults = credential(secrets(environ), api_key_env=name)

    assert headers == ()
    assert faults == [("nodes[0].api_key_env", message)]


def test_a_line_break_in_a_variable_is_refused_and_not_quoted():
    _, [(place, message)] = credential(secrets({"KEY": "CANARY\r\nx: y"}), api_key_env="KEY")

    assert place == "nodes[0].api_key_env"
    assert "CANARY" not in message


def test_a_file_that_can_not_be_read():
    _, faults = credential(secrets(), api_key_file="/no/such/file")

    assert faults == [("nodes[0].api_key_file", "can't be read: No such file or directory")]


def test_a_path_that_is_none(tmp_path):
    _, faults = credential(Secrets({}, tmp_path), api_key_file="a\0b")

    assert faults == [("nodes[0].api_key_file", "is no path")]


def test_only_one_source_can_count():
    found = secrets({"KEY": "x"})

    _, faults = credential(found, api_key_env="KEY", api_key_file="key")

    assert faults == [("nodes[0].api_key_file", "api_key_env is given too: only one can count")]


def test_a_bare_name_is_looked_for_among_the_credentials_of_the_service_first(tmp_path):
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "both").write_text("of the service")
    for name in ("both", "beside"):
        (tmp_path / name).write_text("of the folder")
    found = Secrets({"CREDENTIALS_DIRECTORY": str(credentials)}, tmp_path)

    def key(name):
        return credential(found, "api-key", api_key_file=name)[0][0][1]

    assert key("both") == "of the service"
    assert key("beside") == "of the folder"
    assert key("./both") == "of the folder"


def test_an_endless_file_is_read_in_part(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b"x" * (MAX_KEY_BYTES + 1))

    assert len(read_start(path)) == MAX_KEY_BYTES
