"""`llmgw usage` on a database that a gateway has left behind."""

import asyncio
import csv
import json
import time

import pytest

from llmgw.cli import main, usage
from llmgw.core.failover import Outcome
from llmgw.core.usage import UNKNOWN, Usage
from llmgw.store.requests import Client
from tests.fakes.settlements import settled
from tests.store.conftest import running

CONFIG = """
[[nodes]]
url = "http://127.0.0.1:9"
[[models.available]]
name = "llama"
price_in = 2.0
price_out = 8.0
price_cached = 1.0
"""
SEARCH = Client("search", (("team", "find"), ("env", "prod")))
SPREADSHEET = Client("=HYPERLINK(1)", ())
FAILED = (Outcome.FAILED,)
MILLION = Usage(1_000_000, 500_000, 400_000)
COST = 0.6 * 2 + 0.4 * 1 + 0.5 * 8


async def fill(url, folder):
    now = time.time()
    async with running(url, folder) as store:
        record = store.requests.record
        record(settled("r1", started=now - 60, usage=MILLION), SEARCH)
        record(settled("r2", started=now - 50, usage=UNKNOWN, outcomes=FAILED), SEARCH)
        record(settled("r3", started=now - 40, model="qwen", usage=MILLION), SPREADSHEET)
        record(settled("r4", started=now - 3600 * 24, model="qwen", pool="red"), SEARCH)
        await store.writer.flush()


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(usage, "SERVICE_DATABASE", tmp_path / "none.db")
    file = tmp_path / "llmgw.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def filled(config, tmp_path):
    asyncio.run(fill(f"sqlite:///{tmp_path}/llmgw.db", tmp_path))
    return config


def says(capsys, config, *words):
    status = main(["usage", "-c", str(config), *words])
    found = capsys.readouterr()
    return status, found.out, found.err


def test_people_see_a_table_with_a_total(filled, capsys):
    status, out, _ = says(capsys, filled, "--since", "1h")

    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["key", *usage.COLUMNS, "cost"],
        ["search", "2", "1", "1", "0", "1000000", "500000", "400000", f"{COST:.4f}"],
        ["=HYPERLINK(1)", "1", "1", "0", "0", "1000000", "500000", "400000"],
        ["total", "3", "2", "1", "0", "2000000", "1000000", "800000", f"{COST:.4f}"],
    ]


def test_without_prices_there_is_no_cost(filled, capsys):
    filled.write_text('[[nodes]]\nurl = "http://127.0.0.1:9"\n')

    _, out, _ = says(capsys, filled)

    assert "cost" not in out
    assert out.splitlines()[-1].split() == ["total", "4", "3", "1", "0", *TOTALS]


TOTALS = ("2000010", "1000020", "800005")


def test_scripts_see_numbers_and_what_has_no_price(filled, capsys):
    _, out, _ = says(capsys, filled, "--json", "--by", "model")

    document = json.loads(out)
    llama, qwen = document["usage"]
    assert document["by"] == "model"
    assert document["until"] - document["since"] == pytest.approx(30 * 86400)
    assert (llama["group"], llama["requests"], llama["unpriced_requests"]) == ("llama", 2, 0)
    assert llama["cost"] == pytest.approx(COST)
    assert (qwen["cost"], qwen["unpriced_requests"]) == (None, 2)


def test_spreadsheets_see_rows_and_no_formula(filled, capsys):
    _, out, _ = says(capsys, filled, "--csv")

    head, *rows = csv.reader(out.splitlines())
    assert head == ["key", *usage.COLUMNS, "cost"]
    assert [row[0] for row in rows] == ["search", "'=HYPERLINK(1)"]


def test_labels_have_no_total_since_a_request_may_have_two(filled, capsys):
    _, out, _ = says(capsys, filled, "--by", "label")

    assert {line.split()[0] for line in out.splitlines()} == {
        "label",
        "env=prod",
        "team=find",
        "-",
    }


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        (["--pool", "red"], ["red/a"]),
        (["--pool", "red", "--pool", "blue"], ["blue/a", "red/a"]),
        (["--pool", "red", "--since", "1h"], []),
    ],
)
def test_pools_and_times_that_are_not_asked_for_do_not_count(filled, capsys, words, groups):
    _, out, _ = says(capsys, filled, "--by", "assignment", "--csv", *words)

    assert [row[0] for row in csv.reader(out.splitlines())][1:] == groups


def test_a_gateway_that_had_no_file_left_its_database_all_the_same(filled, capsys, monkeypatch):
    monkeypatch.setattr(usage, "DEFAULT_FILE", filled.with_name("none.toml"))

    assert main(["usage", "--pool", "red", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("search,1,1,0")


def test_no_request_is_no_failure(filled, capsys):
    assert says(capsys, filled, "--pool", "nobody") == (0, "no requests\n", "")


def test_another_database_can_be_named_also_without_a_configuration(filled, capsys, tmp_path):
    url = f"sqlite:///{tmp_path}/llmgw.db"

    status, out, _ = says(capsys, tmp_path / "nowhere.toml", "--database", url)

    assert (status, out.splitlines()[0].split()[0]) == (0, "key")


def test_the_services_database_is_read_where_there_is_no_own(
    config, capsys, tmp_path, monkeypatch
):
    place = tmp_path / "service.db"
    asyncio.run(fill(f"sqlite:///{place}", tmp_path))
    monkeypatch.setattr(usage, "SERVICE_DATABASE", place)

    status, out, _ = says(capsys, config)

    assert status == 0
    assert "search" in out


def test_looking_for_a_database_makes_none(config, capsys, tmp_path):
    status, out, err = says(capsys, config)

    assert (status, out) == (1, "")
    assert err.startswith("llmgw usage: no database at sqlite:///")
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--since", "yesterday"], id="no duration"),
        pytest.param(["--database", "mysql://x"], id="no database that is known"),
        pytest.param(["--database", "postgresql://u:CANARY@127.0.0.1:9/x"], id="nobody there"),
    ],
)
def test_what_can_not_be_read_is_one_line(filled, capsys, words):
    status, out, err = says(capsys, filled, *words)

    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "CANARY" not in err


def test_a_file_that_is_no_database_is_one_line(config, capsys, tmp_path):
    (tmp_path / "llmgw.db").write_bytes(b"no database at all" * 100)

    status, _, err = says(capsys, config)

    assert (status, err.count("\n")) == (1, 1)


def test_a_faulty_configuration_is_named(config, capsys):
    config.write_text("[gateway]\nlistn = 1\n")

    status, _, err = says(capsys, config)

    assert status == 1
    assert "gateway.listn" in err
