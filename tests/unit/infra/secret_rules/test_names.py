"""Names of secrets, and values that are none: a table of names, and one of values."""

from __future__ import annotations

import pytest

from vertex_training.secret_rules.names import fetches, is_secret, looks_random, strength


@pytest.mark.parametrize(
    ("strong", "names"),
    [
        (
            "sure",
            "DB_PASSWORD DB_PASSWORD_2 password1 passwd passphrase passcode PWD dbpwd sshpass "
            "apiKey API_KEY api-key apikey ACCESS_KEY accesskey privateKey privatekey AUTH_KEY "
            "authkey credential credentials SECRET_KEY encryption_key signing-key master_key "
            "license_key licence_key FERNET_KEY webhookKey hmac_key account_key COHERE_KEY "
            "openai_key anthropic_key mistral_key gemini_key WANDB_KEY comet_key neptune_key "
            "clearml_key pinecone_key DB_PASS database_pass user_pw root_pass admin_pw mysql_pass "
            "pg_pass postgres_pass redis_pass mongo_pass smtp_pass mail_pass email_pass ftp_pass "
            "proxy_pass login_pass registry_pass docker_pass git_pass ldap_pass kafka_pass "
            "amqp_pass es_pass elastic_pass account_pass ssh_pass",
        ),
        (
            "likely",
            "secret CLIENT_SECRET pass FORWARD_PASS pw authToken_1 authtoken accesstoken "
            "ACCESS_TOKEN secretkey bearer redis_auth session_cookie token HF_TOKEN hfToken "
            "github_pat gh_pat gitlab_pat git_pat azure_pat ado_pat",
        ),
        ("key", "key KEY ssh_key my-key dataKey keyfile_key"),
        (
            "",
            "keys passes token_count auth cookie pat my_pat AUTH tokens cache_key public_key "
            "sort-key partition_key primary_key foreign_key shard_key hash_key row_key pad_token "
            "EOS_TOKEN bosToken unk_token sep_token cls_token mask_token stop_token start_token "
            "end_token begin_token image_token video_token audio_token think_token prompt_token "
            "special_token decoder_token newline_token blank_token fim_token delimiter_token "
            "max_token min_token num_token next_token first_token last_token total_token new_token "
            "input_token output_token per_token by_token each_token forced_token suppress_token "
            "word_token sub_token current_token prev_token previous_token name PASSWORD_FILE",
        ),
    ],
)
def test_a_name_says_how_surely_its_value_is_a_secret(strong: str, names: str) -> None:
    found = {name: strength(name) for name in names.split()}
    assert found == dict.fromkeys(found, strong)


def test_a_number_at_the_end_of_a_name_counts_others() -> None:
    assert strength("DB_PASSWORD_12") == "sure"
    assert strength("DB_PASSWORD_123") == ""
    assert strength("") == strength("12") == ""


HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("name", "value", "in_variable", "elsewhere"),
    [
        ("name", HEX, False, False),
        ("DB_PASSWORD", "hunter", True, True),
        ("DB_PASSWORD", "12345", True, True),
        ("DB_PASSWORD", "1234", True, True),
        ("DB_PASSWORD", "123", False, False),
        ("API_KEY", "12345", False, False),
        ("DB_PASSWORD", "1.5", False, False),
        ("DB_PASSWORD", "${DB_PASSWORD}", False, False),
        ("DB_PASSWORD", "$(DB_PASSWORD)", False, False),
        ("DB_PASSWORD", "projects/p/secrets/s", False, False),
        ("DB_PASSWORD", "/run/secrets/db", False, False),
        ("DB_PASSWORD", "./db", False, False),
        ("DB_PASSWORD", "~/db", False, False),
        ("DB_PASSWORD", "gs://b/x", False, False),
        ("DB_PASSWORD", "https://x", False, False),
        ("DB_PASSWORD", "file:x", False, False),
        ("DB_PASSWORD", "C:\\x", False, False),
        ("DB_PASSWORD", "<password>", False, False),
        ("DB_PASSWORD", "[secret]", False, False),
        ("DB_PASSWORD", "****", False, False),
        ("DB_PASSWORD", "{{ password }}", False, False),
        *(("DB_PASSWORD", word, False, False) for word in (
            "true", "False", "yes", "no", "on", "off", "None", "null", "undefined", "auto",
            "required", "optional", "")),
        ("DB_PASSWORD", "truex", True, True),
        ("credentials", "see", True, False),
        ("credentials", "see1", True, True),
        ("my_key", HEX, True, True),
        ("my_key", HEX[:31], True, False),
        ("my_key", "a1b2-C3d4e5f6g7h", True, False),
        ("my_key", "a1b2-C3d4e5f6g7", False, False),
        ("my_key", "words-and-more-words", False, False),
        ("redis_auth", "Bearer", False, False),
        ("redis_auth", "api_key", False, False),
        ("redis_auth", "hunter", True, False),
        ("redis_auth", "a1b2c3d4", True, True),
        ("HF_TOKEN", "hunter", True, False),
        ("HF_TOKEN", "a1b2c3d4", True, True),
        ("FORWARD_PASS", "bf16", False, False),
        ("FORWARD_PASS", "a1b2c3d4", True, True),
        ("pass", "hunter", True, False),
    ],
)  # fmt: skip
def test_a_value_is_a_secret_by_its_name_and_its_looks(
    name: str, value: str, in_variable: bool, elsewhere: bool
) -> None:
    assert is_secret(name, value, variable=True) is in_variable
    assert is_secret(name, value, variable=False) is elsewhere


@pytest.mark.parametrize(
    ("value", "is_random"),
    [
        ("a1b2c3d4", True),
        ("a1b2c3d", False),
        ("abcdefgh", False),
        ("12345678", False),
        ("model-v12", False),
        ("2026-01-31", False),
        ("trainer123", False),
        ("trainer1234", True),
        ("x" * 500 + "1", False),
        ("user@host:/path/v1", False),
    ],
)
def test_letters_and_digits_that_are_no_words_look_random(value: str, is_random: bool) -> None:
    assert looks_random(value) is is_random


@pytest.mark.parametrize(
    ("value", "is_code"),
    [
        *((value, True) for value in (
            "$X", "`x`", "<x>", "os.environ['x']", "os.getenv", "self.token", "config.token",
            "args.key", "secrets.token", "module.x", "get_secret(", "client.get(")),
        *((value, False) for value in ("hunter2", "myself.token", "self", "x (y)", "")),
    ],
)  # fmt: skip
def test_code_that_fetches_a_value_is_none(value: str, is_code: bool) -> None:
    assert fetches(value) is is_code
