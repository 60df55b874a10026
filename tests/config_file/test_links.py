import pytest

from llmgw.config_file import links
from llmgw.config_file.base_urls import GivenUrl
from llmgw.config_file.faults import Unfit
from llmgw.core.config import BaseUrl


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (links.DATABASE_URL, "sqlite://"),
        (links.DATABASE_URL, "sqlite:///relative.db"),
        (links.DATABASE_URL, "sqlite:////var/lib/llmgw/llmgw.db"),
        (links.DATABASE_URL, "postgresql://db.internal/llmgw"),
        (links.DATABASE_URL, "postgresql://user@/llmgw?host=/run/postgresql"),
        (links.ENDPOINT, "http://127.0.0.1:4318/v1/traces"),
        (links.HOST, "10.0.0.5"),
    ],
)
def test_a_url_is_kept_as_written(kind, text):
    assert kind.parse(text) == text
    assert kind.show(text) == text


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (links.DATABASE_URL, "llmgw.db"),
        (links.DATABASE_URL, "mysql://h/x"),
        (links.DATABASE_URL, "sqlite://llmgw.db"),
        (links.DATABASE_URL, "sqlite:///"),
        (links.DATABASE_URL, "postgresql://h:port/x"),
        (links.DATABASE_URL, "postgresql://[/x"),
        (links.DATABASE_URL, 5),
        (links.ENDPOINT, "localhost:4318"),
        (links.ENDPOINT, "http://h:port"),
        (links.ENDPOINT, "http://user:pw@h"),
        (links.HOST, "http://h"),
        (links.BASE_URL, 5),
        (links.ORIGINS, "*"),
        (links.ORIGINS, [5]),
        (links.ORIGINS, ["https://host/"]),
        (links.ORIGINS, ["host"]),
    ],
    ids=lambda one: getattr(one, "name", repr(one)),
)
def test_what_is_no_such_url_is_refused(kind, value):
    with pytest.raises(Unfit):
        kind.parse(value)


def test_a_near_miss_of_the_scheme_is_seen():
    with pytest.raises(Unfit) as refused:
        links.DATABASE_URL.parse("postgre://h/x")

    assert refused.value.hint == 'did you mean "postgres"?'


def test_a_password_is_seen_and_never_shown():
    url = "postgresql://user:CANARY@h:5432/x?a=b"

    assert links.has_password(url)
    assert links.DATABASE_URL.show(url) == "postgresql://user:***@h:5432/x?a=b"
    assert not links.has_password("postgresql://user@h/x")


def test_a_base_url_shows_what_it_is_taken_as():
    given = links.BASE_URL.parse("http://h:8000/v1/")

    assert given == GivenUrl(BaseUrl("http", "h", 8000), trimmed=True)
    assert links.BASE_URL.show(given) == "http://h:8000"


@pytest.mark.parametrize("origins", [[], ["*"], ["https://a.example", "http://[::1]:3000"]])
def test_web_origins(origins):
    assert links.ORIGINS.parse(origins) == tuple(origins)
    assert links.ORIGINS.show(tuple(origins)) == origins
