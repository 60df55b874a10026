"""What a provider's message may carry to its client."""

import pytest

from llmgw.core.sanitize import MESSAGE_AT_MOST, sanitize_message, sanitize_token

SECRETS = [
    "sk-abcDEF0123456789",
    "sk-proj-abc_DEF-0123456789",
    "sk-ant-api03-AAAA0123456789",
    "sk-1234****************6789",
    "org-Abc123Def456",
    "org_01HXYZABCDEF",
    "proj_9x8y7z6w",
    "acct_1032D82eZvKYlo2C",
    "user-Q1w2E3r4T5",
    "someone.else+tag@mail.example.co.uk",
    "3f2b8c1e-6a4d-4f1b-9c0d-1234567890ab",
    "ghp16C7e42F292c6912E7710c838347Ae178B4a",
    "https://platform.example.com/account/api-keys?org=123",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "Incorrect key: {}.", "limit for '{}', see docs", "({})"]
)
def test_what_identifies_somebody_is_replaced(secret, around):
    message = sanitize_message(around.format(secret))

    assert secret not in message
    assert secret[4:-1] not in message


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("in organization 8f3a22 on tokens", "in organization [redacted] on tokens"),
        ("Account ID: 123456 is over", "Account ID: [redacted] is over"),
        ("Bearer abcdefghijklmnopqrst was refused", "Bearer [redacted] was refused"),
    ],
)
def test_ids_that_are_named_are_replaced(message, shown):
    assert sanitize_message(message) == shown


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9001 tokens. Please reduce the length of the messages.",
        "Invalid type for 'messages[0].content': expected a string, but got an integer instead.",
        "prompt is too long: 200001 tokens > 200000 maximum",
        "tools.0.function.parameters: 'user_name' is not of type 'object'",
        "max_completion_tokens must be <= 4096 for gpt-4o-mini-2024-07-18",
        "Unsupported value: 'temperature'\nuse 1",
    ],
)
def test_what_a_client_corrects_by_is_left_as_it_is(message):
    assert sanitize_message(message) == message


def test_a_message_is_cut_and_nothing_half_hidden_remains():
    secret = "sk-abcDEF0123456789"

    assert len(sanitize_message("x " * 5000)) == MESSAGE_AT_MOST
    assert "sk-" not in sanitize_message("x " * (MESSAGE_AT_MOST // 2 - 5) + secret)


def test_control_characters_become_spaces():
    assert sanitize_message("a\x00b\x1b[31m\r\nc\ud800") == "a b [31m \nc "


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        ("", None),
        ("context_length_exceeded", "context_length_exceeded"),
        ("messages[0].content", "messages[0].content"),
        ("1500", "1500"),
        ("some prose about it", None),
        ("sk-abcDEF0123456789", None),
        ("someone@example.com", None),
        ("x" * 101, None),
    ],
)
def test_codes_pass_where_they_look_like_codes(value, shown):
    assert sanitize_token(value) == shown
