"""The registry of rules and its page. Which file breaks which rule: ``test_corpus``."""

import re

from vertex_training import catalog
from vertex_training.customjob import rules
from vertex_training.customjob.request import ignoring


def test_every_rule_has_an_id_a_summary_a_source_and_a_level():
    for rule in rules.ALL:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
        assert rule.summary.endswith(".")
        assert "\n" not in rule.summary
        assert len(rule.summary) <= 110
        assert rule.source
        assert rule.level in ("error", "warning", "note")
    assert len({rule.id for rule in rules.ALL}) == len(rules.ALL)


def test_the_page_of_rules_is_generated_from_the_code():
    from tools.generate import rules_doc

    assert rules_doc.TARGET.read_text(encoding="utf-8") == rules_doc.generate()


def test_no_job_file_can_ignore_a_rule_about_its_stack():
    of_stack = {each.id for each in rules.RULES if each.subject in ignoring.OF_A_STACK}
    assert of_stack >= {"secret-granted", "limit-strategy", "interface-room", "reservation-any"}
    assert not ignoring.IGNORABLE & of_stack
    rest = {each.id for each in rules.RULES} - of_stack - ignoring.IGNORABLE
    assert rest == {"service-account", "label-reserved", "job-region"}


def test_the_messages_of_both_kinds_of_jobs_have_different_names():
    custom = catalog.load("custom_job.json")["messages"]
    assert not custom.keys() & catalog.load("tuning_job.json")["messages"].keys()
