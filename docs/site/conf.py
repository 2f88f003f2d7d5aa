"""How `make site` turns the pages of docs/ into a site with search, by Sphinx.

The pages stay plain Markdown that GitHub shows as it is. A link to a file outside of docs/ becomes
a download of that file; a link to a page or heading that does not exist fails the build. The
tables of rules, policies and keys of stack files are added here, from the code.
"""

import json
import re

from tools.generate.reference import TABLES
from vertex_training.host import Host

project = "Vertex AI training, declared"
copyright = "the authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
# The folder is the checkout, so that a page may link to files outside of docs/.
include_patterns = ["docs/**", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
root_doc = "docs/site/index"
html_theme = "furo"
html_title = project
html_show_sphinx = False
# GitHub draws diagrams; here they stand as text, since their script would come from elsewhere.
suppress_warnings = ["misc.highlighting_failure"]
# Links name headings as GitHub does.
myst_heading_anchors = 4
# Signatures name types of Pulumi and Google, whose documentation is elsewhere.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}

#: What other languages get: each argument with its text, its type and the words to choose from.
SCHEMA = json.loads(Host().schema or "")


def setup(app):
    app.connect("autodoc-process-docstring", list_arguments)
    app.connect("source-read", add_tables)


def add_tables(_app, page, text):
    """The tables of the reference, below the head of their page."""
    if page in TABLES:
        text[0] += "\n" + TABLES[page]()


def list_arguments(_app, what, _name, described, _options, lines):
    """The arguments of a component below the class that has them, those of nested objects too."""
    component, args, _ = getattr(described, "__name__", "").partition("Args")
    resource = SCHEMA["resources"].get(f"vertex-training:index:{component}")
    if what == "class" and args and resource:
        lines += ["", *fields(resource["inputProperties"], resource.get("requiredInputs", ()))]


def fields(properties, required, path="", inside=()):
    for name, each in properties.items():
        token = nested(each)
        found = SCHEMA["types"].get(token, {})
        words = [f"``{value['value']}``" for value in found.get("enum", ())]
        kind = " or ".join(words) or token.rpartition(":")[2]
        text = re.sub(r"`([^`]+)`", r"``\1``", " ".join(each.get("description", "").split()))
        needed = "" if name in required else ", optional"
        yield f":param {path}{name}: ({kind}{needed}) {text}"
        if "properties" in found and token not in inside:
            below = f"{path}{name}.{'KEY.' if 'additionalProperties' in each else ''}"
            yield from fields(
                found["properties"], found.get("required", ()), below, (*inside, token)
            )


def nested(field):
    """The type of a property, or of what its list or map has."""
    while inner := field.get("items") or field.get("additionalProperties"):
        field = inner
    return field.get("$ref", "").removeprefix("#/types/") or field.get("type", "object")
