import pytest

from llmgw.cli import main

URLS = ["http://10.0.0.5:8000", "http://10.0.0.6:8000/v1"]


def test_init_writes_a_file_that_checks_well(tmp_path, capsys):
    path = str(tmp_path / "llmgw.toml")

    assert main(["init", *URLS, "-o", path]) == 0
    assert capsys.readouterr().out == f"wrote {path}; next: llmgw serve -c {path}\n"
    assert main(["check", "-c", path]) == 0
    assert "ok, 2 nodes, 1 pool" in capsys.readouterr().out


def test_the_file_lies_in_the_current_folder_if_not_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert main(["init", *URLS]) == 0
    assert (tmp_path / "llmgw.toml").exists()


def test_init_prints_instead_when_asked(capsys):
    assert main(["init", *URLS, "-o", "-", "--listen", ":8001"]) == 0

    out = capsys.readouterr().out
    assert 'url = "http://10.0.0.6:8000"\n' in out
    assert '\nlisten = ":8001"\n' in out


def test_an_existing_file_is_overwritten_only_when_that_is_asked(tmp_path, capsys):
    path = tmp_path / "llmgw.toml"
    path.write_text("kept")

    assert main(["init", *URLS, "-o", str(path)]) == 1
    assert path.read_text() == "kept"
    assert "exists already" in capsys.readouterr().err

    assert main(["init", *URLS, "-o", str(path), "--force"]) == 0
    assert "10.0.0.5" in path.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["10.0.0.5:8000"], "nodes[0].url: must be a base URL"),
        (["http://h", "http://h"], "nodes[1].url: http://h is the URL of nodes[0] too"),
        (["http://localhost:8000"], "gateway.listen takes another port"),
        (["http://h", "--listen", "8000"], "gateway.listen: must be"),
    ],
)
def test_a_bad_url_is_one_clear_line_and_no_file(tmp_path, capsys, words, message):
    path = tmp_path / "llmgw.toml"

    assert main(["init", *words, "-o", str(path)]) == 1
    assert message in capsys.readouterr().err
    assert not path.exists()
