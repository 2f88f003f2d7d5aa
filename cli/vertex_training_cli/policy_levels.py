"""Levels of policies, from the stack file and the file of ``--policy-levels``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vertex_training import naming
from vertex_training import stack as stacks
from vertex_training.errors import CommandError, ConfigError, Problem, nearest
from vertex_training.settings import stack_files
from vertex_training_cli.engine import paths
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.engine.values import as_mapping

#: Levels of policies, as the engine spells them.
LEVELS: Final = ("advisory", "mandatory", "remediate", "disabled")
#: Key of the level in a policy's configuration.
LEVEL: Final = "enforcementLevel"

#: The policy whose configuration contains ``limits.memberDomains``.
DOMAINS_POLICY: Final = "members-of-own-domains"
#: Minimum similarity of a misspelled name to the name of a known policy.
LIKENESS: Final = 0.8

PolicyConfig = dict[str, dict[str, Any]]


def policy_config(root: Path, stack: str, file: Path | None) -> PolicyConfig:
    """Return the configuration of policies by name: level and settings."""
    levels = _of_stack(root, stack)
    for name, settings in _of_file(file).items() if file else ():
        levels[name] = {**levels.get(name, {}), **settings}
    return levels


def up_options(root: Path, stack: str, arguments: Sequence[str], file: Path | None) -> list[str]:
    """Return options that set the levels of the policy packs in ``arguments``."""
    packs = [argument for argument in arguments if argument.partition("=")[0] == "--policy-pack"]
    if file and not packs:
        raise CommandError(
            "--policy-levels requires --policy-pack.", "add the option --policy-pack"
        )
    config = policy_config(root, stack, file) if packs else {}
    if not config or any(argument.startswith("--policy-pack-config") for argument in arguments):
        return []
    folder = paths.own_folder(root, "policies")
    return _config_options(len(packs), config, folder / f"{stack}.json")


def _config_options(packs: int, config: PolicyConfig, file: Path) -> list[str]:
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return ["--policy-pack-config", str(file)] * packs


def options(packs: Sequence[str], config: PolicyConfig, folder: Path) -> list[str]:
    """Return engine options for policy packs, and write their configuration into ``folder``."""
    pack_words = [word for pack in packs for word in ("--policy-pack", str(Path(pack).absolute()))]
    if not (packs and config):
        return pack_words
    return [*pack_words, *_config_options(len(packs), config, folder / "policies.json")]


def levels_of(config: PolicyConfig) -> dict[str, str]:
    """Return the level of each policy whose configuration sets a level."""
    return {name: settings[LEVEL] for name, settings in sorted(config.items()) if LEVEL in settings}


def with_levels(plan: Plan, config: PolicyConfig) -> tuple[Plan, list[Problem]]:
    """Return the plan with the levels of its policies, and problems of unknown policies.

    If the preview failed for another reason than a violation, no policy is reported as unknown,
    because the list of policies may be incomplete.
    """
    checked = plan.policies | {violation.policy for violation in plan.violations}
    is_complete = plan.succeeded or any(violation.is_mandatory for violation in plan.violations)
    levels, unknown = levels_of(config), set[str]()
    if checked and is_complete:
        # A disabled policy does not check the plan.
        unknown = {name for name in levels if levels[name] != "disabled"} - checked
    hint = "remove the entry, or add --policy-pack with the policy's pack"
    problems = [_unknown(name, plan.policies, hint) for name in sorted(unknown)]
    known = {name: level for name, level in levels.items() if name not in unknown}
    return dataclasses.replace(plan, levels=known), problems


def problems(levels: Mapping[str, str]) -> list[Problem]:
    """Return problems of misspelled names of this project's policies."""
    from vertex_training.guardrails import policy

    known = [rule.id for rule in policy.load()]
    return [
        _unknown(name, known)
        for name in levels
        if name not in known and nearest(name, known, LIKENESS)
    ]


def _unknown(name: str, known: Collection[str], hint: str = "") -> Problem:
    if meant := nearest(name, known, LIKENESS):
        hint = f"did you mean '{meant}'?"
    return Problem("unknown policy", name, hint, ("policyLevels", name))


def _of_stack(root: Path, stack: str) -> PolicyConfig:
    """Return levels and domains of the stack file; empty if the file has mistakes."""
    try:
        raw = stack_files.read_raw(stacks.SCHEMA, root, stack)
    except (ConfigError, OSError):
        return {}
    levels = as_mapping(raw.get("policyLevels"))
    config: PolicyConfig = {
        str(name): {LEVEL: str(level)} for name, level in levels.items() if level in LEVELS
    }
    if isinstance(others := as_mapping(raw.get("limits")).get("memberDomains"), list):
        project, number = str(raw.get("project")), str(raw.get("projectNumber"))
        domains = naming.own_domains(project, number, map(str, others))
        config.setdefault(DOMAINS_POLICY, {})["domains"] = domains
    return config


def _of_file(file: Path) -> PolicyConfig:
    option = f"--policy-levels {file}"
    hint = 'write {"POLICY": {"enforcementLevel": "advisory"}}, see docs/review.md'
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as failed:
        raise CommandError(f"{option}: {failed.strerror or failed}.") from None
    except (ValueError, RecursionError):
        raise CommandError(f"{option}: the content is not valid JSON.", hint) from None
    if not isinstance(content, dict):
        raise CommandError(f"{option}: the content is not a JSON object.", hint)
    config: PolicyConfig = {}
    for name, entry in content.items():
        settings = {LEVEL: entry} if isinstance(entry, str) else entry
        if not isinstance(settings, dict) or settings.get(LEVEL, "mandatory") not in LEVELS:
            levels = ", ".join(LEVELS)
            what = f"{option}: {name} has an unknown level. Choose one of {levels}."
            raise CommandError(what, hint)
        config[name] = settings
    return config
