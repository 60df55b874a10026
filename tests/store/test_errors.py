"""What drivers say, and what it means."""

import sqlite3

import pytest
from sqlalchemy.exc import DBAPIError

from llmgw.store.errors import StoreError, StoreFault, store_error


def of_sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("secret text")
    error.sqlite_errorcode = code
    return error


def of_postgres(state: str) -> Exception:
    error = Exception("secret text")
    error.sqlstate = state
    return error


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        pytest.param(of_sqlite(sqlite3.SQLITE_BUSY), StoreFault.LOCKED, id="busy"),
        pytest.param(of_sqlite(sqlite3.SQLITE_BUSY | 2 << 8), StoreFault.LOCKED, id="snapshot"),
        pytest.param(of_sqlite(sqlite3.SQLITE_IOERR), StoreFault.UNREACHABLE, id="disk error"),
        pytest.param(of_sqlite(sqlite3.SQLITE_CONSTRAINT), StoreFault.OTHER, id="constraint"),
        pytest.param(of_postgres("53100"), StoreFault.FULL, id="disk full"),
        pytest.param(of_postgres("53300"), StoreFault.UNREACHABLE, id="too many connections"),
        pytest.param(of_postgres("57P01"), StoreFault.UNREACHABLE, id="shut down"),
        pytest.param(of_postgres("28P01"), StoreFault.REFUSED, id="wrong password"),
        pytest.param(of_postgres("25006"), StoreFault.READ_ONLY, id="a standby"),
        pytest.param(of_postgres("40P01"), StoreFault.CONFLICT, id="deadlock"),
        pytest.param(of_postgres("23502"), StoreFault.OTHER, id="not null"),
        pytest.param(of_postgres("42501"), StoreFault.REFUSED, id="no privilege"),
        pytest.param(of_postgres("42703"), StoreFault.OTHER, id="no such column"),
        pytest.param(ConnectionRefusedError(), StoreFault.UNREACHABLE, id="refused"),
        pytest.param(TimeoutError(), StoreFault.UNREACHABLE, id="silent"),
        pytest.param(UnicodeEncodeError("a", "b", 0, 1, "c"), StoreFault.OTHER, id="value"),
        pytest.param(OverflowError(), StoreFault.OTHER, id="number"),
        pytest.param(StoreError(StoreFault.FULL), StoreFault.FULL, id="told before"),
    ],
)
def test_an_error_is_understood_alone_and_wrapped(error, fault):
    wrapped = DBAPIError("SELECT secret", {"secret": 1}, error)

    for one in (error, wrapped):
        found = store_error(one)
        assert found.fault is fault
        assert "secret" not in str(found)
        assert str(found).startswith("database.url: ")


def test_an_unknown_error_of_a_driver_is_taken_for_an_outage():
    """Rows are better kept on disk for nothing than refused for good."""
    found = store_error(DBAPIError("SELECT 1", {}, Exception("what")))

    assert found.is_outage


@pytest.mark.parametrize("fault", list(StoreFault))
def test_each_fault_has_a_line_of_its_own(fault):
    others = {str(StoreError(one)) for one in StoreFault if one is not fault}

    assert str(StoreError(fault)) not in others
    assert "\n" not in str(StoreError(fault, "detail"))
