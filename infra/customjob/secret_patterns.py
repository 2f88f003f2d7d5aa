"""What looks like a secret, by its name or by its form.

Standard library only: the policy pack, which has an environment of its own, judges by the same.
"""

from __future__ import annotations

import re

#: The last word of a variable's name that makes its value a secret.
SECRET_NAME = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|CREDENTIALS?|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|"
    r"SECRET_KEY|AUTH_KEY|(?<!PAD_)(?<!EOS_)(?<!BOS_)(?<!UNK_)(?<!SEP_)(?<!CLS_)(?<!MASK_)TOKEN)\Z",
    re.IGNORECASE,
)
#: Values that only name a secret, or say where it is.
HARMLESS = re.compile(
    r"projects/[^/]+/secrets/.*|\$\(.*\)|\$\{?\w+\}?|/.*|gs://.*|[A-Za-z]:\\.*|<.*>|true|false|[0-9.]*",
    re.IGNORECASE | re.DOTALL,
)
#: Forms of well-known tokens, wherever they stand.
TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20}|sk-[A-Za-z0-9_-]{20}|gh[pousr]_[A-Za-z0-9]{30}|"
    r"github_pat_[A-Za-z0-9_]{30}|glpat-[A-Za-z0-9_-]{20}|AIza[A-Za-z0-9_-]{35}|"
    r"AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10}|ya29\.[A-Za-z0-9_-]{20}|"
    r"eyJ[A-Za-z0-9_-]{10,200}\.eyJ[A-Za-z0-9_-]{10})|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"
)
