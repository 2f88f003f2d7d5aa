"""The page's own parts: values and strong words have tags, and nothing in a value makes one."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from tests.unit.vt.review import plans
from vertex_training_cli.review import html, report


@pytest.mark.parametrize(
    ("value", "tagged", "untagged"),
    [
        ("a", "<code>a</code>", "a"),
        ("", "", ""),
        ("<b>&", "<code>&lt;b&gt;&amp;</code>", "<b>&"),
    ],
)
def test_a_value_is_code_and_escaped(value: str, tagged: str, untagged: str) -> None:
    quoted = html._quoted(value)
    assert quoted == html._quoted(value, 1)
    assert html._tagged(quoted) == Markup(tagged)
    assert html._untagged(quoted) == untagged


def test_words_that_are_strong_have_tags_and_a_value_with_the_same_characters_has_none() -> None:
    assert html._tagged("a \ue002b\ue003 <c>") == Markup("a <strong>b</strong> &lt;c&gt;")
    assert html._untagged("a \ue002b\ue003") == "a b"
    forged = html._tagged(html._quoted("\ue002x\ue003"))
    assert forged.startswith("<code>")
    assert "<strong>" not in forged


def test_the_template_escapes_and_fails_for_a_name_that_is_not_there() -> None:
    environment = html.template().environment
    assert html.template() is html.template()
    made = environment.from_string("{% if true %}\n  {{ x }}|{{ x | visible }}\n{% endif %}\nend\n")
    assert made.render(x="<i>") == "  &lt;i&gt;|&lt;i&gt;\nend\n"
    with pytest.raises(Exception, match="'absent' is undefined"):
        environment.from_string("{{ absent }}").render()


def test_a_page_is_whole_and_has_strong_words() -> None:
    act_as = {
        "serviceAccountId": f"projects/p/serviceAccounts/{plans.ACCOUNT}", "member": "allUsers",
        "role": "roles/iam.serviceAccountUser",
    }  # fmt: skip
    events = (
        plans.create("gcp:serviceaccount/iAMMember:IAMMember", "i", **act_as),
        plans.create(plans.MEMBER, "m", **plans.member("data")),
    )
    page = html.render(report.build(plans.plan(*events), source="here"))
    assert page.startswith("<!DOCTYPE html>\n")
    assert page.endswith("</html>\n")
    assert "<strong>" in page
    assert not {"\ue000", "\ue001", "\ue002", "\ue003"} & set(page)
