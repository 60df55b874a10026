"""Whatever stands in a file, there is a configuration or a list of faults, and nothing else."""

from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from llmgw.config_file.addresses import format_listen, parse_listen
from llmgw.config_file.assembly import SECTIONS, parse
from llmgw.config_file.base_urls import parse_base_url, write_base_url
from llmgw.config_file.faults import ConfigError, Report, Unfit
from llmgw.config_file.rendering import render
from llmgw.config_file.writing import write_document
from tests.config_file.texts import DIGEST, config_of, secrets

WORDS = ["", "off", "x", "cluster", "3s", "32MiB", ":8000", "http://h:1/v1", "unix:/x", DIGEST]
scalars = st.one_of(
    st.text(max_size=8),
    st.sampled_from(WORDS),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(),
    st.datetimes(
        min_value=datetime.fromisoformat("1980-01-01"),
        max_value=datetime.fromisoformat("2100-01-01"),
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


def table_of(section):
    keys = {one.key: values for one in section.fields}
    children = {
        one.key: st.lists(table_of(one), max_size=2) | values
        for one in SECTIONS
        if one.path.rpartition(".")[0] == section.path
    }
    return st.fixed_dictionaries({}, optional=keys | children)


files = st.fixed_dictionaries(
    {},
    optional={
        section.path: (
            st.lists(table_of(section), max_size=2) if section.many else table_of(section)
        )
        | values
        for section in SECTIONS
        if "." not in section.path
    }
    | {"provision": values, "unknown": values},
)


@settings(max_examples=100)
@given(files)
def test_a_file_is_loaded_or_refused_with_places(root):
    parsed, faults = None, ()
    try:
        parsed = parse(root, secrets(), Report())
    except ConfigError as error:
        faults = error.faults

    assert all(fault.place and fault.message for fault in faults)
    assert bool(faults) is (parsed is None)
    if parsed is not None:
        assert config_of(write_document(render(parsed.config))).nodes == parsed.config.nodes


@given(st.text() | st.from_regex(r"https?://[^/]{0,12}(/.{0,8})?"))
def test_a_base_url_is_read_or_refused_and_reads_back(text):
    try:
        url = parse_base_url(text).url
    except Unfit:
        return

    assert parse_base_url(write_base_url(url)).url == url


@given(st.text() | st.from_regex(r"[^:]{0,8}:[0-9]{1,6}"))
def test_an_address_is_read_or_refused_and_reads_back(text):
    try:
        listen = parse_listen(text)
    except Unfit:
        return

    assert parse_listen(format_listen(listen)) == listen
