"""Patterns of secrets, by name and by form, and redaction.

Standard library only: the policy pack uses these patterns in an environment of its own.
"""

from __future__ import annotations

import re
from typing import Final

#: The last word of a variable's name that makes its value a secret.
SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|CREDENTIALS?|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|"
    r"SECRET_KEY|AUTH_KEY|(?<!PAD_)(?<!EOS_)(?<!BOS_)(?<!UNK_)(?<!SEP_)(?<!CLS_)(?<!MASK_)TOKEN)\Z",
    re.IGNORECASE,
)
#: Values that only refer to a secret: names, paths, references.
HARMLESS: Final = re.compile(
    r"projects/[^/]+/secrets/.*|\$\(.*\)|\$\{?\w+\}?|/.*|gs://.*|[A-Za-z]:\\.*|<.*>|true|false|[0-9.]*",
    re.IGNORECASE | re.DOTALL,
)
#: Forms of well-known tokens, anywhere in a text, and a password in a URL.
TOKEN: Final = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20}|sk-[A-Za-z0-9_-]{20}|gh[pousr]_[A-Za-z0-9]{30}|"
    r"github_pat_[A-Za-z0-9_]{30}|glpat-[A-Za-z0-9_-]{20}|AIza[A-Za-z0-9_-]{35}|"
    r"AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10}|ya29\.[A-Za-z0-9_-]{20}|"
    r"eyJ[A-Za-z0-9_-]{10,200}\.eyJ[A-Za-z0-9_-]{10})|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----|"
    r"://[^\s/:@]{0,100}:[^\s/@$<{*]{3,200}@"
)
#: Any of these up to its end, with the text before a password.
_WHOLE: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)|"
    r"(://[^\s/:@]{0,100}:)[^\s/@$<{*]{3,200}(?=@)|"
    rf"(?:{TOKEN.pattern})[A-Za-z0-9_.-]*",
    re.DOTALL,
)


def redacted(text: str, replacement: str = "[secret]") -> str:
    """``text`` with every part that has the form of a secret replaced.

    >>> redacted("git clone https://me:hunter2@example.com/x.git")
    'git clone https://me:[secret]@example.com/x.git'
    """
    return _WHOLE.sub(lambda match: (match[1] or "") + replacement, text)


#: What follows a secret's name in YAML or on a command line, unless it only refers to one.
_NAMED: Final = re.compile(
    r"((?:PASSWORD|PASSWD|SECRET|CREDENTIALS?|API_?KEY|ACCESS_KEY|PRIVATE_KEY|TOKEN)[\"']?\s*[,:=]"
    r"\s*(?:value\s*:\s*)?)(?![\"']?\$)([^\s,}\]]{1,200})",
    re.IGNORECASE,
)


def masked(line: str) -> str:
    """``line`` of a file with what looks like a secret masked by asterisks. Keeps its length.

    >>> masked("env: [{name: DB_PASSWORD, value: hunter2}]")
    'env: [{name: DB_PASSWORD, value: *******}]'
    """

    def stars(match: re.Match[str]) -> str:
        kept = match[1] or ""
        return kept + "*" * (len(match[0]) - len(kept))

    return _NAMED.sub(stars, _WHOLE.sub(stars, line))
