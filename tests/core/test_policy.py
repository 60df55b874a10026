"""Keys, their policies, and that the ring never falls open."""

from hashlib import sha256

import pytest

from llmgw.core.config import KeyConfig
from llmgw.core.errors import AuthenticationFailed, PermissionDenied
from llmgw.core.policy import OPEN, KeyRing, admit, build_policy, token_of
from llmgw.core.types import CLUSTER, PoolName
from tests import builders


def key(token, **fields):
    return KeyConfig("k", sha256(token.encode()).hexdigest(), **fields)


def test_a_known_token_makes_its_principal_known():
    ring = KeyRing.from_keys(
        [
            key(
                "secret-1",
                pool=PoolName("p"),
                models=("llama",),
                labels=(("team", "a"),),
                max_in_flight=3,
                explain=True,
            ),
            key("secret-2"),
        ]
    )

    found = ring.authenticate("secret-1", now=0)

    assert (found.name, found.pool, found.explain, found.max_in_flight) == ("k", "p", True, 3)
    assert found.labels == (("team", "a"),)
    assert found.key == sha256(b"secret-1").hexdigest()[:16]
    assert ring.authenticate("secret-2", now=0).pool == CLUSTER


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("secret-2", id="unknown"),
        pytest.param(sha256(b"secret-1").hexdigest(), id="the digest itself"),
        pytest.param("caf\xe9\udce9", id="odd characters"),
    ],
)
@pytest.mark.parametrize("keys", [(), ("secret-1",)], ids=["no keys", "one key"])
def test_without_a_matching_key_the_gateway_is_closed(keys, token):
    ring = KeyRing.from_keys(key(one) for one in keys)

    with pytest.raises(AuthenticationFailed) as refused:
        ring.authenticate(token, now=0)

    assert (refused.value.status, refused.value.code) == (401, "invalid_api_key")
    assert not token or token not in str(refused.value)


def test_a_digest_in_the_wrong_place_is_compared_too():
    ring = KeyRing({sha256(b"a").hexdigest(): KeyRing.from_keys([key("b")]).keys.popitem()[1]})

    with pytest.raises(AuthenticationFailed):
        ring.authenticate("a", now=0)


def test_a_key_ends_when_it_expires():
    ring = KeyRing.from_keys([key("a", expires_at=100.0)])

    assert ring.authenticate("a", now=99.9)
    with pytest.raises(AuthenticationFailed, match="expired"):
        ring.authenticate("a", now=100.0)


def test_the_first_of_two_entries_with_one_digest_counts():
    ring = KeyRing.from_keys([key("a", models=("x",)), key("a")])

    assert not ring.authenticate("a", now=0).models.allows("y")


@pytest.mark.parametrize("token", [None, "anything"])
def test_the_open_ring_takes_anybody(token):
    found = KeyRing.open().authenticate(token, now=0)

    assert found is OPEN
    assert found.models.allows("any")


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ((("authorization", "Bearer t"),), "t"),
        ((("authorization", "bearer  t "),), "t"),
        ((("authorization", "Basic dTpw"), ("x-api-key", "t")), "t"),
        ((("authorization", "Bearer "), ("api-key", "t")), "t"),
        ((("authorization", "Bearer a"), ("x-api-key", "b")), "a"),
        ((("api-key", "b"), ("x-api-key", "a")), "a"),
        ((("x-api-key", ""), ("api-key", "b")), "b"),
        ((("authorization", "t"),), None),
        ((("cookie", "t"),), None),
        ((), None),
    ],
)
def test_the_token_is_taken_from_one_of_three_headers(headers, token):
    assert token_of(headers) == token


@pytest.mark.parametrize(
    ("patterns", "allowed", "refused"),
    [
        (("*",), ("a", "A/b:c", ""), ()),
        (("llama",), ("llama",), ("Llama", "llama2", "")),
        (("gpt-*", "llama"), ("gpt-", "gpt-4", "llama"), ("GPT-4", "xgpt-4", "llama-2")),
        (("a?c", "x[12]"), ("abc", "x1"), ("ac", "x3", "a?cd")),
        ((), (), ("a",)),
    ],
)
def test_a_policy_is_of_exact_names_and_globs(patterns, allowed, refused):
    policy = build_policy(patterns)

    assert all(policy.allows(model) for model in allowed)
    assert not any(policy.allows(model) for model in refused)


def test_a_model_outside_the_policy_is_refused():
    ring = KeyRing.from_keys([key("a", models=("m",)), key("b", models=("n",))])

    admit(ring.authenticate("a", now=0), builders.call())
    with pytest.raises(PermissionDenied) as refused:
        admit(ring.authenticate("b", now=0), builders.call())

    assert (refused.value.status, refused.value.code) == (403, "model_not_allowed")


@pytest.mark.parametrize(
    ("wanted", "pool"),
    [
        pytest.param("two", "p2", id="by its name"),
        pytest.param(sha256(b"b").hexdigest()[:16], "p2", id="by its id"),
        pytest.param("b", "p2", id="by the key itself"),
        pytest.param("c", None, id="no such key"),
    ],
)
def test_an_operator_finds_a_key(wanted, pool):
    keys = [key("a", pool=PoolName("p1")), KeyConfig("two", sha256(b"b").hexdigest(), "p2")]
    found = KeyRing.from_keys(keys).find(wanted)

    assert (found and found.pool) == pool
