"""Names of secrets, and values that are not secrets: references, paths, switches, code."""

from __future__ import annotations

import re
from typing import Final, Literal

#: Strength with which a name indicates a secret. ``sure``: any value is a secret. ``likely``: any
#: value of a variable, and any other random value. ``key``: only a random value. Empty: no value.
Strength = Literal["sure", "likely", "key", ""]

#: A word in a name. DB_PASS, db-pass and dbPass have the same words.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD: Final = re.compile(r".*(?:password|passwd|passphrase|passcode)|pwd|[a-z]+pwd|sshpass")
#: Words before ``key`` that make any value a secret.
_SECRET_KEYS: Final = re.compile(
    r"api|access|private|secret|auth|encryption|signing|master|licen[cs]e|fernet|webhook|hmac|"
    r"account|cohere|openai|anthropic|mistral|gemini|wandb|comet|neptune|clearml|pinecone"
)
#: Words before ``key`` in names for values that name or order data.
_PLAIN_KEYS: Final = re.compile(r"cache|public|sort|partition|primary|foreign|shard|hash|row")
#: Words before ``pass`` and ``pw`` that name an account. Other words name steps of a computation.
_ACCOUNTS: Final = re.compile(
    r"db|database|user|root|admin|mysql|pg|postgres|redis|mongo|smtp|mail|email|ftp|"
    r"proxy|login|registry|docker|git|ldap|kafka|amqp|es|elastic|account|ssh"
)
#: Words before ``token`` in names of a language model's tokens, or of numbers of tokens.
_MARKS: Final = re.compile(
    r"pad|eos|bos|unk|sep|cls|mask|stop|start|end|begin|image|video|audio|think|prompt|special|"
    r"decoder|newline|blank|fim|delimiter|max|min|num|next|first|last|total|new|input|output|per|"
    r"by|each|forced|suppress|word|sub|current|prev|previous"
)
_PAT_OF: Final = re.compile(r"github|gh|gitlab|git|azure|ado")

#: Values that only reference a secret, such as names and paths, and values of switches.
HARMLESS: Final = re.compile(
    r"projects/[^/]+/secrets/.*|\$\(.*\)|\$\{?\w+\}?|\{\{?[\w. ]*\}?\}|/.*(?<!=)|\.{1,2}/.*|~/.*|gs://.*|"
    r"https?://.*|file:.*|[A-Za-z]:\\.*|<.*>|\[(?:secret|removed|redacted)\]|[*]+|"
    r"true|false|yes|no|on|off|none|null|undefined|auto|required|optional|[0-9.]*",
    re.IGNORECASE | re.DOTALL,
)
#: Kinds of authentication, which are possible values of ``AUTH``.
_WAYS: Final = re.compile(
    r"oauth2?|basic|bearer|iam|adc|token|ldap|saml2?|oidc|kerberos|jwt|google|x509|mtls|api_?key|"
    r"password|native|trust|md5|scram[\w-]*|sasl|plain|digest|ntlm|anonymous|default",
    re.IGNORECASE,
)
#: Beginnings of code that reads a value from elsewhere.
_FETCHES: Final = re.compile(
    r"[$`<]|os\.environ|os\.getenv|(?:self|cls|cfg|config|conf|args|opts|options|params|hparams|"
    r"settings|env|environ|secrets|credentials|var|each|data|module|local)\.[A-Za-z_]|"
    r"[A-Za-z_][\w.]{0,80}\("
)
#: A part of a name: a word and a small number.
_NAME_PART: Final = re.compile(r"[A-Za-z]*[0-9]{0,3}|[0-9]{1,4}[A-Za-z]?")
_HEX: Final = re.compile(r"[0-9a-f]{32,64}", re.IGNORECASE)
#: Maximum number of characters of a value that are checked.
_LOOKED_AT: Final = 500


def strength(name: str) -> Strength:
    """Return how strongly a name indicates a secret, such as "sure" for DB_PASS."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdecimal() and len(words[-1]) < 3:
        words.pop()  # DB_PASSWORD_2
    if not words:
        return ""
    before, last = ["", *words][-2:]
    if (
        _PASSWORD.fullmatch(last)
        or last in ("apikey", "accesskey", "privatekey", "authkey", "credential", "credentials")
        or (last == "key" and _SECRET_KEYS.fullmatch(before))
        or (last in ("pass", "pw") and _ACCOUNTS.fullmatch(before))
    ):
        return "sure"
    if (
        last in ("secret", "pass", "pw", "authtoken", "accesstoken", "secretkey", "bearer")
        or (last == "auth" and before)
        or (last == "cookie" and before)
        or (last == "token" and not _MARKS.fullmatch(before))
        or (last == "pat" and _PAT_OF.fullmatch(before))
    ):
        return "likely"
    return "key" if last == "key" and not _PLAIN_KEYS.fullmatch(before) else ""


def is_secret(name: str, value: str, *, variable: bool) -> bool:
    """Return True if the name makes the value a secret. ``variable``: the name is a variable's."""
    strong = strength(name)
    value = value[:_LOOKED_AT]
    if not strong:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    if HARMLESS.fullmatch(value):  # a password may have only digits
        is_password = any(_PASSWORD.fullmatch(word) for word in words)
        return strong == "sure" and is_password and value.isdecimal() and len(value) > 3
    if strong == "sure":  # "Application Default Credentials: see docs" is prose
        prose = words[-1:] in (["credential"], ["credentials"]) and value.isalpha()
        return variable or not prose
    if strong == "key":
        return bool(_HEX.fullmatch(value)) or (
            variable and len(value) >= 16 and looks_random(value)
        )
    if words[-1] == "auth" and _WAYS.fullmatch(value):
        return False
    weak = words[-1] in ("pass", "pw") and len(words) > 1  # FORWARD_PASS=bf16
    return looks_random(value) or (variable and not weak)


def fetches(value: str) -> bool:
    """Return True if an unquoted value is code that reads the value from elsewhere."""
    return _FETCHES.match(value) is not None


def looks_random(value: str) -> bool:
    """Return True if a value looks generated, with letters and digits instead of words."""
    value = value[:_LOOKED_AT]
    mixed = re.search(r"[A-Za-z]", value) and re.search(r"[0-9]", value)
    name = all(_NAME_PART.fullmatch(part) for part in re.split(r"[-_./:@]", value))
    return len(value) >= 8 and bool(mixed) and not name
