"""Password hashes: made, written, read, compared."""

import pytest

from llmgw.core.admin_password import MalformedHash, hash_password, nobodys_hash, parse_hash

SALT = b"0123456789abcdef"
WRITTEN = f"scrypt$16384$8$5${'A' * 22}==${'A' * 43}="


def test_a_password_matches_its_hash_and_no_other():
    made = hash_password("grüße 🔑", SALT)

    assert made.matches("grüße 🔑")
    assert not made.matches("grüße")
    assert not made.matches("")


def test_what_is_written_is_read_again():
    made = hash_password("x", SALT)

    assert parse_hash(str(made)) == made
    assert str(made).startswith("scrypt$16384$8$5$")


def test_nobodys_hash_matches_nothing_and_costs_as_much_as_a_real_one():
    nobody, real = nobodys_hash(SALT, b"k" * 32), hash_password("x", SALT)

    assert (nobody.n, nobody.r, nobody.p) == (real.n, real.r, real.p)
    assert not nobody.matches("")


def test_a_lone_surrogate_is_a_password_that_does_not_match():
    assert not hash_password("x", SALT).matches("\ud800")


def test_the_salt_makes_equal_passwords_differ():
    assert hash_password("x", SALT).key != hash_password("x", SALT[::-1]).key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hunter2",
        "scrypt$x",
        WRITTEN.replace("16384", "16385"),
        WRITTEN.replace("16384", "1"),
        WRITTEN.replace("$8$", "$0$"),
        WRITTEN.replace("$5$", "$0$"),
        WRITTEN.replace("$5$", "$65$"),
        WRITTEN.replace("16384", "16777216"),
        WRITTEN.replace("A==", "A="),
        WRITTEN + "\n",
    ],
    ids=[
        "empty",
        "the password itself",
        "cut short",
        "N is no power of two",
        "N is 1",
        "r is 0",
        "p is 0",
        "p is endless",
        "more memory than there may be",
        "broken base64",
        "something behind it",
    ],
)
def test_what_is_no_hash_is_refused_without_quoting_it(text):
    with pytest.raises(MalformedHash) as caught:
        parse_hash(text)

    assert str(caught.value) == ""
