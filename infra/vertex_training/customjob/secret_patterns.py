"""Secrets in texts: by their form, by the name before them; and redaction.

Standard library only: the policy pack uses these patterns in an environment of its own.
``tests/corpus/secrets`` has texts that are found and texts that are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

#: Forms of well-known tokens; shapes as the rules of gitleaks and detect-secrets have them.
_FORMS: Final = (
    r"hf_[A-Za-z0-9]{20}",  # Hugging Face
    r"api_org_[A-Za-z0-9]{30}",
    r"wandb_v1_[A-Za-z0-9_]{30}",
    r"sk-(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20}",  # OpenAI; sk-learn-… is a name
    r"sk-(?:proj|svcacct|admin|None)-(?=[\w-]{0,60}[A-Z])(?=[\w-]{0,60}[0-9])[A-Za-z0-9_-]{20}",
    r"sk-ant-[a-z]{3,5}[0-9]{2}-[A-Za-z0-9_-]{20}",  # Anthropic
    r"sk-or-v1-[0-9a-f]{32}",
    r"gsk_[A-Za-z0-9]{40}|r8_[A-Za-z0-9]{30}|pplx-[A-Za-z0-9]{40}",
    r"gh[pousr]_[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{30}",
    r"gl(?:pat|dt|rt|ptt|soat|ft|imt)-[A-Za-z0-9_-]{20}",
    r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20}|GOCSPX-[A-Za-z0-9_-]{24}",  # Google
    r"1//0[A-Za-z0-9_-]{30}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # AWS
    r"xox[abeoprs]-[A-Za-z0-9-]{10}|xapp-[0-9]-[A-Za-z0-9-]{20}",  # Slack
    r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10}|whsec_[A-Za-z0-9+/]{20}",  # Stripe
    r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32}|SK[0-9a-f]{32}\b",  # SendGrid, Twilio
    r"npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{30}|rubygems_[0-9a-f]{48}",
    r"dckr_pat_[A-Za-z0-9_-]{20}|do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}",
    r"hv[sb]\.[A-Za-z0-9_-]{20}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40}|pul-[0-9a-f]{40}",
    r"dp\.(?:pt|st|ct)\.[A-Za-z0-9.]{30}|gl(?:sa|c)_[A-Za-z0-9+/_]{30}",
    r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}|NRAK-[A-Z0-9]{27}|lin_api_[A-Za-z0-9]{30}",
    r"PMAK-[0-9a-f]{24}-[0-9a-f]{30}|ATATT3[A-Za-z0-9_=-]{40}|ntn_[A-Za-z0-9]{40}",
    r"[0-9a-f]{32}-us[0-9]{1,2}\b|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",  # Mailchimp, Telegram
    r"[A-Za-z0-9_.-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31}",  # Azure
    r"AGE-SECRET-KEY-1[A-Z0-9]{50}",
    r"nvapi-[A-Za-z0-9_-]{40}|pcsk_[A-Za-z0-9_]{30}",  # NVIDIA, Pinecone
    r"sk-lf-[0-9a-f]{8}-[0-9a-f]{4}-",  # Langfuse
    # A service account's key in base64, by how its JSON begins.
    r"(?:eyJ0eXBlIjogInNlcnZpY2VfYWNjb3Vu|eyJ0eXBlIjoic2VydmljZV9hY2NvdW50|"
    r"ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3Vu)[A-Za-z0-9+/]{20}",
    r"eyJ[A-Za-z0-9_-]{10,200}\.eyJ[A-Za-z0-9_-]{10}",  # JSON Web Token
)
#: Forms that only the text before a secret tells from other text: (text before, secret).
_FORMS_IN_CONTEXT: Final = (
    (r"://[^\s/:@]{0,100}:", r"[^\s/@$<{*]{3,200}(?=@)"),
    (r"(?i:(?:Account|SharedAccess)Key=)", r"[A-Za-z0-9+/]{40}"),
    (r"hooks\.slack\.com/(?:services|workflows|triggers)/", r"[A-Za-z0-9+/]{30}"),
    (r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/", r"[A-Za-z0-9_-]{30}"),
    (r"(?i:X-(?:Goog|Amz)-Signature=)", r"[0-9a-fA-F]{64}"),
    (r"(?i:[?&]sig=)", r"[A-Za-z0-9%+/]{40}"),
    (
        r"(?i:Authorization\\?[\"']?\s?[:=]\s?\\?[\"']?(?:Bearer|Basic|Token)\s+)",
        r"[A-Za-z0-9+/=._~-]{8}",
    ),
    (
        r"\bcurl\b.{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:",
        r"[^\s$\"']{3,200}",
    ),
    (r"\bwandb[\s\"',]{1,5}login[\s\"',]{1,5}(?:--\w+\s+){0,3}", r"[0-9a-f]{40}\b"),
)
_PRIVATE_KEY: Final = r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
_FORM: Final = rf"\b(?:{'|'.join(_FORMS)})"
#: Forms of well-known tokens, anywhere in a text, and a password in a URL.
TOKEN: Final = re.compile(
    "|".join([_FORM, _PRIVATE_KEY, *(before + secret for before, secret in _FORMS_IN_CONTEXT)])
)
#: Any of these up to its end; the text before a secret is a group.
_WHOLE: Final = re.compile(
    rf"{_PRIVATE_KEY}[^\"']*?"
    r"(?:-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----|(?=\\?[\"'])|\Z)|"
    rf"(?:{_FORM}|{'|'.join(f'({before}){secret}' for before, secret in _FORMS_IN_CONTEXT)})"
    r"[A-Za-z0-9_.~%+/=-]*",
    re.DOTALL,
)

#: Words of a name: DB_PASS, db-pass and dbPass have the same.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD: Final = re.compile(r"(?:password|passwd|passphrase|passcode)\Z")
#: Before ``key``: the value is a secret, whatever it looks like.
_SECRET_KEYS: Final = re.compile(r"api|access|private|secret|auth|encryption|signing|master")
#: Before ``key``: the value names or orders data.
_PLAIN_KEYS: Final = re.compile(r"cache|public|sort|partition|primary|foreign|shard|hash|row")
#: Before ``pass``: an account, not a turn of a computation.
_ACCOUNTS: Final = re.compile(
    r"db|database|user|root|admin|mysql|pg|postgres|redis|mongo|smtp|mail|email|ftp|"
    r"proxy|login|registry|docker|git|ldap|kafka|amqp|es|elastic|account"
)
#: Before ``token``: a mark in a text that a model reads.
_MARKS: Final = re.compile(
    r"pad|eos|bos|unk|sep|cls|mask|stop|start|end|begin|image|video|audio|think|"
    r"prompt|special|decoder|newline|blank|fim|delimiter"
)
_PAT_OF: Final = re.compile(r"github|gh|gitlab|git|azure|ado")

#: Values that only refer to a secret: names, paths, references; and those of switches.
HARMLESS: Final = re.compile(
    r"projects/[^/]+/secrets/.*|\$\(.*\)|\$\{?\w+\}?|\{\{?[\w. ]*\}?\}|/.*|\.{1,2}/.*|~/.*|gs://.*|"
    r"https?://.*|file:.*|[A-Za-z]:\\.*|<.*>|\*+|true|false|yes|no|on|off|none|null|auto|[0-9.]*",
    re.IGNORECASE | re.DOTALL,
)
#: How code and shell texts begin that fetch a value.
_CODE: Final = ("$", "`", "<", "os.environ", "os.getenv")
#: Parts of a value that is words and small numbers, like a name.
_NAME_PART: Final = re.compile(r"[A-Za-z]*[0-9]{0,3}|[0-9]{1,4}[A-Za-z]?")
_HEX: Final = re.compile(r"[0-9a-f]{32,64}", re.IGNORECASE)

#: A mapping or list of one line, in which the value may stand: ``{value: hunter2}``.
_INSIDE: Final = r"\{(?:[^{}\n]|\{[^{}\n]{0,300}+\}){0,300}+\}?|\[(?:[^\[\]\n]){0,500}+\]?"
#: Name and value in a text: ``NAME=value``, ``"name": "value"``, ``--name value``, and two words
#: of a list in JSON.
_ASSIGNED: Final = re.compile(
    r"(?<![\w.-])(?P<dash>-{0,2})(?P<name>[A-Za-z_][\w.-]{0,80})\\?[\"']?"
    r"(?:(?P<sign>\s?[=:]\s?)|(?P<space>[ \t]{1,4}(?!-)|,\s?(?=\\?[\"'][^-])))"
    rf"\\?[\"']?(?P<value>{_INSIDE}|[^\s\"'\\,;&}}\]]{{1,500}})"
)
#: An entry of ``env`` in JSON or YAML.
_VARIABLE: Final = re.compile(
    r"name[\"']?\s*:\s*[\"']?(?P<name>\w{1,100})[\"']?\s*,\s*[\"']?value[\"']?\s*:\s*[\"']?"
    r"(?P<value>[^\s\"',}\]]{1,2000})"
)


def is_secret_variable(name: str, value: str) -> bool:
    """Whether an environment variable holds a secret, by its name or by the form of its value.

    >>> is_secret_variable("DB_PASS", "hunter2"), is_secret_variable("PAD_TOKEN", "pad")
    (True, False)
    """
    return bool(value) and (_is_secret(name, value, strict=False) or contains_secret(value))


def is_secret_value(name: str, value: str) -> bool:
    """Whether a field holds a secret by its name, which need not be a variable's."""
    return bool(value) and _is_secret(name, value, strict=True)


def contains_secret(text: str) -> bool:
    """Whether a text holds a secret: a well-known form, or a value after a secret's name.

    >>> contains_secret("--db-pass=hunter2"), contains_secret("--passes=3")
    (True, False)
    """
    return bool(TOKEN.search(text)) or any(True for _ in _assigned_secrets(text))


def secret_words(words: Sequence[str]) -> Iterator[int]:
    """Indices of the words of a command line that hold a secret.

    >>> list(secret_words(["--user", "me", "--password", "hunter2"]))
    [3]
    """
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        flag = before.startswith("-") and "=" not in before and not word.startswith("-")
        by_name = flag and _is_secret(before.lstrip("-"), word, strict=True)
        login = before == "login" and len(word) == 40 and _HEX.fullmatch(word)
        if by_name or login or contains_secret(word):
            yield index


def _assigned_secrets(text: str) -> Iterator[re.Match[str]]:
    """Values in a text that stand after the name of a secret."""
    place = 0
    while match := _ASSIGNED.search(text, place):
        named = match["sign"] or match["dash"]
        if named and _is_secret(match["name"], match["value"], strict=True):
            yield match
            place = match.end()
        else:  # a value may itself be the name before another value
            place = match.end("name")
    yield from (
        match
        for match in _VARIABLE.finditer(text)
        if _is_secret(match["name"], match["value"], strict=False)
    )


def _is_secret(name: str, value: str, *, strict: bool) -> bool:
    """Whether the name makes the value a secret; ``strict`` for names that are not variables'."""
    words = [word.lower() for word in _WORD.findall(name)] or [""]
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if strict and value.startswith(_CODE):
        return False
    if HARMLESS.fullmatch(value):  # a password may be digits alone
        return bool(_PASSWORD.search(last)) and value.isdecimal() and len(value) > 3
    sure = bool(
        _PASSWORD.search(last)
        or last in ("apikey", "pwd")
        # "Application Default Credentials: see docs" is prose.
        or (last in ("credential", "credentials") and not (strict and value.isalpha()))
        or (last == "key" and _SECRET_KEYS.fullmatch(before))
        or (last == "pass" and _ACCOUNTS.fullmatch(before))
    )
    likely = bool(
        last in ("secret", "pass", "authtoken", "accesstoken", "secretkey")
        or (last == "token" and not _MARKS.fullmatch(before))
        or (last == "pat" and _PAT_OF.fullmatch(before))
    )
    if sure or (likely and not strict and last != "pass"):
        return True
    if last == "key" and not _PLAIN_KEYS.fullmatch(before):
        return bool(_HEX.fullmatch(value))
    return likely and _looks_random(value)


def _looks_random(value: str) -> bool:
    """Whether a value is like one that a program made: letters and digits, not words."""
    mixed = re.search(r"[A-Za-z]", value) and re.search(r"[0-9]", value)
    name = all(_NAME_PART.fullmatch(part) for part in re.split(r"[-_./:@]", value))
    return len(value) >= 8 and bool(mixed) and not name


def redacted(text: str, replacement: str = "[secret]") -> str:
    """``text`` with every part that looks like a secret replaced.

    >>> redacted("git clone https://me:hunter2@example.com/x.git")
    'git clone https://me:[secret]@example.com/x.git'
    >>> redacted("train --password=hunter2 --passes=3")
    'train --password=[secret] --passes=3'
    """
    text = _WHOLE.sub(lambda match: _before(match) + replacement, text)
    for match in sorted(_assigned_secrets(text), key=lambda each: each.start(), reverse=True):
        start, end = match.span("value")
        if replacement not in text[start : end + 1]:
            text = text[:start] + replacement + text[end:]
    return text


def _before(match: re.Match[str]) -> str:
    """The text before the secret that a match has."""
    return match[match.lastindex] if match.lastindex else ""


#: What follows a secret's name in YAML or on a command line, unless it only refers to one.
_NAMED: Final = re.compile(
    r"((?:PASSWORD|PASSWD|PASS|SECRET|CREDENTIALS?|API_?KEY|ACCESS_KEY|PRIVATE_KEY|TOKEN)[\"']?"
    rf"\s*[,:=]\s*(?:value\s*:\s*)?)(?![\"']?\$)"
    # Permissions and switches of workflows: `id-token: write`, `persist-credentials: false`.
    rf"(?!(?:true|false|read|write|none)\s*(?:#.*)?$)({_INSIDE}|[^\s,}}\]]{{1,200}})",
    re.IGNORECASE,
)


def masked(line: str) -> str:
    """``line`` of a file with what looks like a secret masked by asterisks. Keeps its length.

    >>> masked("env: [{name: DB_PASSWORD, value: hunter2}]")
    'env: [{name: DB_PASSWORD, value: *******}]'
    >>> masked("  id-token: write")
    '  id-token: write'
    """

    line = _WHOLE.sub(lambda match: _stars(match, _before(match)), line)
    line = _NAMED.sub(lambda match: _stars(match, match[1]), line)
    for match in _assigned_secrets(line):
        start, end = match.span("value")
        line = line[:start] + "*" * (end - start) + line[end:]
    return line


def _stars(match: re.Match[str], kept: str) -> str:
    return kept + "*" * (len(match[0]) - len(kept))
