import os

import pytest

from llmgw.config_file import source
from llmgw.config_file.faults import ConfigError, FileMissing
from llmgw.config_file.source import MAX_BYTES, parse_toml, read_file


def reason(error):
    [fault] = error.value.faults
    return str(fault)


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "llmgw.toml"
    path.write_bytes(b"\xef\xbb\xbf[cluster]\nname = 'x'\n")

    assert parse_toml(read_file(path), path) == {"cluster": {"name": "x"}}


def test_a_missing_file(tmp_path):
    with pytest.raises(FileMissing) as error:
        read_file(tmp_path / "no.toml")

    assert reason(error) == f"{tmp_path}/no.toml: there is no such file"


def test_whoever_named_no_file_is_told_how(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "DEFAULT_FILE", tmp_path / "usual.toml")

    with pytest.raises(FileMissing) as error:
        read_file(tmp_path / "usual.toml")

    assert "llmgw init URL... -o FILE writes one" in reason(error)


def test_a_folder_instead_of_a_file(tmp_path):
    with pytest.raises(ConfigError) as error:
        read_file(tmp_path)

    assert reason(error) == f"{tmp_path}: can't be read: Is a directory"


def test_a_file_that_is_far_too_large(tmp_path):
    path = tmp_path / "llmgw.toml"
    path.touch()
    os.truncate(path, MAX_BYTES + 1)

    with pytest.raises(ConfigError) as error:
        read_file(path)

    assert reason(error) == f"{path}: is larger than 16 MiB"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a = 1\nb = = 2\n", "f: is no TOML: Invalid value (at line 2, column 5)"),
        (b"a = 1\n# \xff\n", "f: is not UTF-8 (line 2)"),
        (b"a = " + b"[" * 100_000, "f: is no TOML: nested too deeply"),
        (b"a = 1\na = 2", "f: is no TOML: Cannot overwrite a value (at end of document)"),
    ],
    ids=["syntax", "encoding", "nesting", "a key twice"],
)
def test_what_is_no_toml_is_one_line_that_says_where(tmp_path, data, message):
    with pytest.raises(ConfigError) as error:
        parse_toml(data, tmp_path.relative_to(tmp_path) / "f")

    assert reason(error) == message
