"""Each form of a secret is found once, to its end, by the rule of its service."""

from __future__ import annotations

import random
from typing import Final

import pytest

from tests.security.test_shapes_of_secrets import SHAPES, made
from vertex_training.secret_rules import forms

#: Shapes of a service whose rule has the name of another one.
OTHERS: Final = {"bitbucket": "atlassian"}
#: Texts with a place for a secret, by shape of the corpus: the rules that find it there.
LINES: Final = {
    "basic-auth-url": ["password-in-url"],
    "token-only-url": ["token-in-url"],
    "token-only-git": ["token-in-url"],
    "database-url": ["password-in-url"],
    "redis-url": ["password-in-url"],
    "dollar-in-url": ["password-in-url"],
    "azure-storage": ["azure-storage-key"],
    "azure-bus": ["azure-storage-key"],
    "azure-signature": ["shared-access-signature"],
    "google-signature": ["signed-url"],
    "aws-signature": ["signed-url"],
    "slack-webhook": ["slack-webhook"],
    "office-webhook": ["office-webhook"],
    "discord-webhook": ["discord-webhook"],
    "chat-webhook": ["google-key", "google-chat-webhook"],
    "bearer-header": ["authorization-header"],
    "basic-header": ["authorization-header"],
    "curl-user": ["curl-user"],
    "docker-login": ["login-password", "user-and-password"],
    "docker-login-piped": ["piped-password"],
    "sudo-piped": ["piped-password"],
    "user-and-p": ["user-and-password"],
    "sshpass": ["sshpass"],
    "mysql": ["database-password"],
    "mysqldump": ["database-password"],
    "redis-cli": ["redis-password"],
    "netrc": ["machine-login"],
    "wandb-login": ["wandb-login"],
    "password-option": [],  # the name tells, not the form
    "service-account-key": ["private-key"],
    "service-account-key-in-base64": ["google-service-account-key"],
    "private-key-rsa": ["private-key"],
    "private-key-ec": ["private-key"],
    "private-key-openssh": ["private-key"],
    "private-key-encrypted": ["private-key"],
    "private-key-pgp": ["private-key"],
}


@pytest.mark.parametrize("shape", SHAPES["tokens"])
def test_a_token_is_found_whole_by_the_rule_of_its_service(shape: str) -> None:
    token, _ = made(SHAPES["tokens"][shape], random.Random(7))
    [(start, end, rule)] = forms.secrets(f"see {token} there")
    assert (start, end) == (4, 4 + len(token))
    service = shape.partition("-")[0]
    assert rule.partition("-")[0] == OTHERS.get(service, service)


@pytest.mark.parametrize("shape", LINES)
def test_a_place_of_a_secret_is_found_by_its_rules(shape: str) -> None:
    text, _ = made(SHAPES["lines"][shape], random.Random(7))
    assert [rule for _, _, rule in forms.secrets(text)] == LINES[shape]


def test_the_end_of_a_longer_word_is_no_token() -> None:
    token = f"hf_{'a1' * 20}"
    assert list(forms.secrets(f"x{token} 0{token}")) == []
    assert [rule for _, _, rule in forms.secrets(f"-{token}")] == ["hugging-face-token"]


def test_every_rule_of_a_place_has_a_text() -> None:
    found = {rule for rules in LINES.values() for rule in rules}
    assert set(forms.PLACES) <= found


KEY = "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # The secret alone, without what tells it.
        ("https://me:hunter2@host/x", [("hunter2", "password-in-url")]),
        ("https://me:$PASS@host/x", []),
        ("https://me:${PASS}@host/x", []),
        ("https://me:<password>@host/x", []),
        ("https://me:{password}@host", []),
        ("https://me:*@host", []),
        ("https://me:%(password)s@host", []),
        ("https://0a1b2c3d4e5f6071@host", [("0a1b2c3d4e5f6071", "token-in-url")]),
        ("https://0a1b2c3d4e5f607@host", []),  # too short
        ("https://service-of-training@host", []),  # words
        ("curl -u me:hunter2 https://x", [("hunter2", "curl-user")]),
        ("curl --user=me:hunter2 https://x", [("hunter2", "curl-user")]),
        ("curl -u me:$PASS https://x", []),
        ("Authorization: Bearer abcdefgh", [("abcdefgh", "authorization-header")]),
        ("authorization=token abcdefgh", [("abcdefgh", "authorization-header")]),
        ("Authorization: Bearer abcdefg", []),
        ("sshpass -phunter2 ssh x", [("hunter2", "sshpass")]),
        ("sshpass -p $PASS ssh x", []),
        ("sshpass -p 22 ssh x", []),
        ("redis-cli -a hunter2", [("hunter2", "redis-password")]),
        ("mysqladmin -phunter2", [("hunter2", "database-password")]),
        ("mysql -p", []),
        ("printf 'hunter2' | helm login x", [("hunter2", "piped-password")]),
        ("echo $PASS | docker login --password-stdin", []),
        ("echo hunter2 | cat", []),
        (f"a {KEY}\nMII\n-----END PRIVATE KEY----- b", [
            (f"{KEY}\nMII\n-----END PRIVATE KEY-----", "private-key")]),
        (f'"{KEY}\\nMII" b', [(f"{KEY}\\nMII", "private-key")]),
        (f"{KEY}\nMII", [(f"{KEY}\nMII", "private-key")]),
        ("-----BEGIN PUBLIC KEY-----\nMII", []),
        ("nothing", []),
    ],
)  # fmt: skip
def test_what_stands_there_is_a_secret_or_none(text: str, found: list[tuple[str, str]]) -> None:
    assert [(text[a:b], rule) for a, b, rule in forms.secrets(text)] == found
