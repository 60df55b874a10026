import pytest

from llmgw.config_file.faults import ConfigError
from llmgw.config_file.target import write_file


def test_a_new_file(tmp_path):
    write_file(tmp_path / "new", "text")

    assert (tmp_path / "new").read_text() == "text"


def test_a_file_that_is_there_is_kept(tmp_path):
    path = tmp_path / "old"
    path.write_text("kept")

    with pytest.raises(ConfigError, match="exists already"):
        write_file(path, "text")

    assert path.read_text() == "kept"


@pytest.mark.parametrize("there", [True, False])
def test_a_file_is_replaced_whole_when_asked(tmp_path, there):
    path = tmp_path / "old"
    if there:
        path.write_text("gone")
        path.chmod(0o640)

    write_file(path, "text", overwrite=True)

    assert path.read_text() == "text"
    assert not there or path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_place_that_can_not_be_written(tmp_path, overwrite):
    with pytest.raises(ConfigError, match="can't be written: No such file or directory"):
        write_file(tmp_path / "no" / "file", "text", overwrite=overwrite)
