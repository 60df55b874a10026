import pytest

from llmgw.core.config import Pool
from llmgw.core.types import Strategy
from tests.config_file.texts import ACCOUNT, NODE, config_of, faults_of


def pool(name, *members, extra=""):
    assignments = "".join(f'[[pools.assignments]]\nupstream = "{one}"\n' for one in members)
    return f'[[pools]]\nname = "{name}"\n{extra}\n{assignments}'


def test_without_pools_there_is_one_of_all_nodes():
    text = NODE + ACCOUNT + '[[nodes]]\nurl = "http://h"\nname = "b"'

    assert config_of(text).pools == (Pool("cluster", ("a", "b")),)


def test_pools_as_written():
    extra = 'strategy = "least_load"\ncache_affinity = false\nmax_in_flight = 5'
    text = NODE + ACCOUNT + pool("cluster", "a") + pool("both", "p", "a", extra=extra)

    assert config_of(text).pools == (
        Pool("cluster", ("a",)),
        Pool("both", ("p", "a"), Strategy.LEAST_LOAD, cache_affinity=False, max_in_flight=5),
    )


def test_with_auth_no_pool_has_to_be_the_cluster():
    assert config_of("[auth]\n" + NODE + pool("mine", "a")).pool("mine") is not None


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param(
            pool("mine", "a"),
            "pools",
            'without [auth] every request goes to a pool "cluster", and there is none',
            id="no cluster and no auth",
        ),
        pytest.param(
            pool("cluster", "b"),
            "pools[0].assignments[0].upstream",
            'no node or account is called "b"',
            id="an unknown upstream",
        ),
        pytest.param(
            pool("cluster", "a", "a"),
            "pools[0].assignments[1].upstream",
            '"a" is in this pool already',
            id="an upstream twice",
        ),
        pytest.param(
            pool("cluster") + pool("cluster"),
            "pools[1].name",
            "is that of pools[0] too",
            id="two pools of one name",
        ),
        pytest.param(
            pool("cluster") + pool("a/b"),
            "pools[1].name",
            'must not hold "/", which parts pool and upstream in ids',
            id="a name that breaks ids",
        ),
        pytest.param(
            pool("cluster", extra='strategy = "random"'),
            "pools[0].strategy",
            'must be one of "round_robin", "least_load", "rendezvous", "least_recent_success"',
            id="an unknown strategy",
        ),
        pytest.param(
            pool("cluster") + "[[pools.assignments]]\n",
            "pools[0].assignments[0].upstream",
            "is missing",
            id="an assignment of nothing",
        ),
    ],
)
def test_a_faulty_pool(text, place, message):
    faults = faults_of(NODE + text)

    assert list(faults) == [place]
    assert faults[place].message == message


def test_an_unknown_upstream_is_told_with_the_nearest_name():
    text = '[[nodes]]\nurl = "http://h"\nname = "gpu-1"\n' + pool("cluster", "gpu1")

    [fault] = faults_of(text).values()

    assert fault.hint == 'did you mean "gpu-1"?'


def test_an_assignment_of_a_node_that_is_faulty_itself_is_not_a_second_fault():
    text = '[[nodes]]\nurl = "nonsense"\nname = "a"\n' + pool("cluster", "a")

    assert list(faults_of(text)) == ["nodes[0].url"]
