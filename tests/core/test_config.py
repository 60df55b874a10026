import pytest

from llmgw.core.config import (
    Account,
    BaseUrl,
    Config,
    ModelConfig,
    ModelsConfig,
    Node,
    Pool,
)

URL = BaseUrl("http", "h", 8000)


@pytest.mark.parametrize(
    ("url", "authority", "text"),
    [
        (BaseUrl("http", "h", 80), "h", "http://h"),
        (BaseUrl("http", "h", 8000), "h:8000", "http://h:8000"),
        (BaseUrl("https", "h", 443, "/team"), "h", "https://h/team"),
        (BaseUrl("https", "h", 80), "h:80", "https://h:80"),
        (BaseUrl("http", "::1", 8000), "[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_a_base_url_names_its_port_only_where_it_is_not_the_schemes(url, authority, text):
    assert url.authority == authority
    assert str(url) == text


def test_the_ring_of_a_model():
    models = ModelsConfig(available=(ModelConfig("m", "big"), ModelConfig("n")))

    assert models.ring_of("m") == "big"
    assert models.ring_of("n") is None
    assert models.ring_of("unknown") is None


def test_an_upstream_does_not_show_its_secrets():
    secret = (("authorization", "Bearer CANARY"),)

    assert "CANARY" not in repr(Node("a", URL, credential=secret))
    assert "CANARY" not in repr(Account("p", URL, credential=secret, headers=secret))


def test_a_configuration_finds_its_parts():
    node, account, pool = Node("a", URL), Account("p", URL), Pool("cluster", ("a",))
    config = Config(nodes=(node,), accounts=(account,), pools=(pool,))

    assert config.upstreams == (node, account)
    assert config.pool("cluster") is pool
    assert config.pool("other") is None
    assert pool.assignment("a") == "cluster/a"
