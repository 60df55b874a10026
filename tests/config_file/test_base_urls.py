import pytest

from llmgw.config_file.base_urls import (
    GivenUrl,
    parse_base_url,
    parse_legacy_host,
    write_base_url,
)
from llmgw.config_file.faults import Unfit
from llmgw.core.config import BaseUrl


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://10.0.0.5:8000", BaseUrl("http", "10.0.0.5", 8000)),
        ("http://10.0.0.5:8000/", BaseUrl("http", "10.0.0.5", 8000)),
        ("HTTP://Node.Example", BaseUrl("http", "node.example", 80)),
        ("https://node.example", BaseUrl("https", "node.example", 443)),
        ("https://host/some/prefix/", BaseUrl("https", "host", 443, "/some/prefix")),
        ("http://[::1]:8000", BaseUrl("http", "::1", 8000)),
        ("http://[0:0:0::1]", BaseUrl("http", "::1", 80)),
        ("https://host/v1beta/openai", BaseUrl("https", "host", 443, "/v1beta/openai")),
        ("http://host:", BaseUrl("http", "host", 80)),
        ("http://my_node:8000", BaseUrl("http", "my_node", 8000)),
        (" http://a:1 ", BaseUrl("http", "a", 1)),
    ],
)
def test_a_base_url_is_taken_as_written(text, url):
    assert parse_base_url(text) == GivenUrl(url)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("http://h:1/v1", ""),
        ("http://h:1/v1/", ""),
        ("http://h:1/team/v1", "/team"),
        ("http://h:1/v1/v1", "/v1"),
    ],
)
def test_one_v1_at_the_end_is_taken_off(text, prefix):
    assert parse_base_url(text) == GivenUrl(BaseUrl("http", "h", 1, prefix), trimmed=True)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("10.0.0.5:8000", id="no scheme"),
        pytest.param("ftp://host", id="another scheme"),
        pytest.param("http://", id="no host"),
        pytest.param("http://:8000", id="only a port"),
        pytest.param("http://host:port", id="a word for a port"),
        pytest.param("http://host:0", id="port 0"),
        pytest.param("http://host:65536", id="port too high"),
        pytest.param("http://::1:8000", id="IPv6 without brackets"),
        pytest.param("http://[::1", id="one bracket"),
        pytest.param("http://[::g]:8000", id="no such address"),
        pytest.param("http://[::1]x:8000", id="text behind the brackets"),
        pytest.param("http://-host", id="a host that is an option"),
        pytest.param("http://ho st", id="a blank"),
        pytest.param("http://hóst", id="a host that is not ASCII"),
        pytest.param("http://h/a//b", id="an empty part in the path"),
        pytest.param("http://h/a b", id="a blank in the path"),
        pytest.param("http://h/?model=x", id="a query"),
        pytest.param("http://h/#x", id="a fragment"),
        pytest.param("http://h/v1/chat/completions", id="the URL of an endpoint"),
    ],
)
def test_what_is_no_base_url_is_refused(text):
    with pytest.raises(Unfit):
        parse_base_url(text)


@pytest.mark.parametrize(
    "text",
    ["http://user:CANARY@host", "http://CANARY@host:99999", "CANARY", "http://h/?key=CANARY"],
)
def test_a_refusal_never_quotes_the_url(text):
    with pytest.raises(Unfit) as refused:
        parse_base_url(text)

    assert "CANARY" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("text", ["http://h:1", "https://h/team", "http://[::1]:1/v1/v1"])
def test_a_base_url_written_reads_back(text):
    assert write_base_url(parse_base_url(text).url) == text


@pytest.mark.parametrize(
    ("text", "host"),
    [("10.0.0.5", "10.0.0.5"), ("[::1]", "::1"), ("::1", "::1"), ("Node-1", "node-1")],
)
def test_the_ip_of_the_older_form_is_an_address_or_a_name(text, host):
    assert parse_legacy_host(text) == host


@pytest.mark.parametrize("text", ["http://h", "10.0.0.5:8000", "::1::", "", "a b"])
def test_what_is_no_ip_of_the_older_form(text):
    with pytest.raises(Unfit):
        parse_legacy_host(text)
