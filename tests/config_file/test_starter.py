import pytest

from llmgw.config_file import config_for_nodes
from llmgw.config_file.starter import starter
from tests.config_file.texts import config_of

URLS = ["http://10.0.0.5:8000", "https://h/team"]


def nodes(urls):
    return config_for_nodes(urls).config.nodes


def test_the_first_file_loads_to_its_nodes():
    assert config_of(starter(nodes(URLS))).nodes == nodes(URLS)


@pytest.mark.parametrize(("listen", "port"), [(None, 8000), (":8001", 8001)])
def test_the_address_to_listen_on_may_be_said(listen, port):
    assert config_of(starter(nodes(URLS), listen)).gateway.listen[0].port == port


def test_what_it_offers_can_be_taken():
    text = starter(nodes(URLS))
    for line in ('listen = ":8000"', 'default = "MODEL"', 'name = "gpu-2"', 'health = "off"'):
        assert f"#{line}\n" in text
        text = text.replace(f"#{line}", line)

    config = config_of(text)

    assert config.models.default == "MODEL"
    assert config.nodes[0].health_path is None
    assert config.nodes[1].name == "gpu-2"
