"""Both sides of each limit of a tuning job: rule, place and value of what is just wrong."""

import datetime

import pytest

from tests.unit.infra.customjob.rules.tuning_cases import (
    ARGS,
    CONDITION,
    DISCRETE,
    DOUBLE,
    METRIC,
    RIGHT,
    WHOLE,
)
from tests.unit.infra.customjob.test_corpus import TABLE
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules import Context
from vertex_training.errors import dotted

WHO = Submission("acme-ml-dev", "us-central1", "dev", "job", run=1)
IMAGE = f"us-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"


def told(text):
    """Rule, place and value of each problem of a file."""
    context = Context(today=datetime.date(2026, 7, 1))
    result = spec.check_job_file(text.encode(), "x.yaml", WHO, TABLE, context)
    return [(p.rule, dotted(p.path), p.value) for p in result.problems]


def tuning(*edits):
    """The right tuning file with edits, each a pair of texts."""
    text = RIGHT
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


P1, P2, P3 = (f"studySpec.parameters[{index}]" for index in (1, 2, 3))
#: A condition of the discrete parameter, on these values.
ON_BATCH = """{0}
      conditionalParameterSpecs:
        - parentDiscreteValues: {{values: {1}}}
          parameterSpec: {{parameterId: x, integerValueSpec: {{minValue: 1, maxValue: 2}}}}"""
#: The same of the integer parameter.
ON_LAYERS = ON_BATCH.replace("Discrete", "Int")
CONDITIONS = "conditionalParameterSpecs[0]"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        # Neither bound: each is taken as 0, and that is all there is to say.
        (
            [(WHOLE, "integerValueSpec: {}")],
            [("parameter-range", f"{P1}.integerValueSpec", "")] * 2,
        ),
        # No maxValue above a minValue: there is no place of its own to point at.
        (
            [(WHOLE, "integerValueSpec: {minValue: 4}")],
            [
                ("parameter-range", f"{P1}.integerValueSpec", "0"),
                ("parameter-range", f"{P1}.integerValueSpec", ""),
            ],
        ),
        ([(WHOLE, "integerValueSpec: {minValue: 1, maxValue: 2}")], []),
        # A thousand values, and one more.
        ([(DISCRETE, f"discreteValueSpec: {{values: {list(range(1, 1001))}}}")], []),
        (
            [(DISCRETE, f"discreteValueSpec: {{values: {list(range(1, 1002))}}}")],
            [("parameter-discrete", f"{P2}.discreteValueSpec.values", "1001")],
        ),
        # Values are 1e-10 apart: study.py, DiscreteValueSpec.
        ([(DISCRETE, "discreteValueSpec: {values: [0, 2.0e-10]}")], []),
        (
            [(DISCRETE, "discreteValueSpec: {values: [0, 5.0e-11, 6.0e-11]}")],
            [("parameter-discrete", f"{P2}.discreteValueSpec.values[1]", "5e-11")],
        ),
        # A condition's value is its parent's within 1e-10: DiscreteValueCondition.
        ([(DISCRETE, ON_BATCH.format(DISCRETE, [32, 16.00000000005]))], []),
        (
            [(DISCRETE, ON_BATCH.format(DISCRETE, [32, 16.000001]))],
            [
                (
                    "parameter-condition",
                    f"{P2}.{CONDITIONS}.parentDiscreteValues.values[1]",
                    "16.000001",
                )
            ],
        ),
        # Of a range both bounds are among the values.
        ([(WHOLE, ON_LAYERS.format(WHOLE, [1, 4]))], []),
        (
            [(WHOLE, ON_LAYERS.format(WHOLE, [0, 5]))],
            [
                ("parameter-condition", f"{P1}.{CONDITIONS}.parentIntValues.values[0]", "0"),
                ("parameter-condition", f"{P1}.{CONDITIONS}.parentIntValues.values[1]", "5"),
            ],
        ),
        # Any white space, anywhere.
        (
            [("metricId: accuracy", 'metricId: "accuracy\\t"')],
            [("metric-id", "studySpec.metrics[0].metricId", "accuracy\t")],
        ),
        # A list of one category alone; a scale that is named as none.
        (
            [("{values: [adam, sgd]}", "{values: [sgd]}")],
            [("parameter-categories", f"{P3}.categoricalValueSpec.values", "sgd")],
        ),
        (
            [(DISCRETE, f"scaleType: SCALE_TYPE_UNSPECIFIED\n      {DISCRETE}")],
            [],
        ),
        # The bound of a log scale is above 0; one wrong value is named, the lowest.
        (
            [(DOUBLE, "doubleValueSpec: {minValue: -2, maxValue: -1}")],
            [("parameter-scale", "studySpec.parameters[0].doubleValueSpec", "-2")],
        ),
        # As many trials as advised, as many at once as there are, as many failures as trials.
        ([("maxTrialCount: 60", "maxTrialCount: 50")], []),
        (
            [("maxTrialCount: 60", "maxTrialCount: 49")],
            [("few-trials", "maxTrialCount", "49")],
        ),
        ([("parallelTrialCount: 3", "parallelTrialCount: 60")], []),
        ([("maxFailedTrialCount: 2", "maxFailedTrialCount: 60")], []),
        ([("maxFailedTrialCount: 2", "maxFailedTrialCount: 0")], []),
        # A share of the trials is 0 to 1, and one metric is left to optimize.
        *(
            (
                [
                    (
                        METRIC,
                        f"{METRIC}    - metricId: heat\n      goal: MINIMIZE\n      "
                        f"safetyConfig: {{desiredMinSafeTrialsFraction: {share}}}\n",
                    )
                ],
                [],
            )
            for share in ("0.0", "1.0")
        ),
        # Bounds that are equal do not exclude each other.
        (
            [
                (
                    "algorithm: RANDOM",
                    "studyStoppingConfig: {minNumTrials: 5, maxNumTrials: 5}\n  algorithm: RANDOM",
                )
            ],
            [],
        ),
        # Without progress is said of one metric; of several, of each field.
        (
            [
                (
                    "algorithm: RANDOM",
                    "studyStoppingConfig: {maxNumTrialsNoProgress: 5, "
                    "maxDurationNoProgress: 60s}\n  algorithm: RANDOM",
                )
            ],
            [],
        ),
        (
            [
                (
                    "algorithm: RANDOM",
                    "studyStoppingConfig: {maxNumTrialsNoProgress: 5, "
                    "maxDurationNoProgress: 60s}\n  algorithm: RANDOM",
                ),
                (METRIC, f"{METRIC}    - metricId: heat\n      goal: MINIMIZE\n"),
            ],
            [
                ("study-stopping", "studySpec.studyStoppingConfig.maxNumTrialsNoProgress", "5"),
                ("study-stopping", "studySpec.studyStoppingConfig.maxDurationNoProgress", "60s"),
            ],
        ),
        # A shell hands on what its script uses, wherever -c stands.
        ([(ARGS, """        command: [bash, -c, 'python train.py "$@"', --]""")], []),
        ([(ARGS, """        command: [/bin/bash, -ec, 'python train.py "${@}"', --]""")], []),
        ([(ARGS, "        command: [python, -c, 'import train; train.main()']")], []),
        ([(ARGS, "        command: [bash, train.sh, again]")], []),
        ([("--epochs=5", "--layers-of=5")], []),
        (
            [("args: [--epochs=5]", "args: [--batch, '5']")],
            [
                (
                    "trial-argument-twice",
                    "trialJobSpec.workerPoolSpecs[0].containerSpec.args[0]",
                    "--batch",
                )
            ],
        ),
        # Ids under conditions of one parent may be the same, if they are disjoint.
        (
            [
                (
                    f"        - {CONDITION}\n",
                    f"        - {CONDITION.replace('sgd', 'adam')}\n"
                    "          parameterSpec:\n"
                    "            parameterId: momentum\n"
                    f"            {WHOLE}\n"
                    f"        - {CONDITION}\n",
                )
            ],
            [],
        ),
    ],
)
def test_a_tuning_file_at_a_limit(edits, expected):
    assert told(tuning(*edits)) == expected


SCRIPT = "trialJobSpec.workerPoolSpecs[0].containerSpec"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "ash", "zsh", "/bin/ksh"])
@pytest.mark.parametrize(
    ("words", "at"),
    [
        # What a script does not name is dropped; the word after it is $0.
        ("[SHELL, -c, python train.py]", "command[2]"),
        ("[SHELL, -xec, 'python train.py $0']", "command[2]"),
        ("[SHELL, -c, 'python train.py \"$1\"']", "command[2]"),
        ("[SHELL, -c, 'python train.py $*', --]", ""),
        ("[SHELL, -c, 'python train.py ${9}', --]", ""),
        ("[SHELL, train.sh, -c]", ""),
        ("[SHELL, -c]", ""),
    ],
)
def test_a_shell_hands_on_what_its_script_names(shell, words, at):
    found = told(tuning((ARGS, f"        command: {words.replace('SHELL', shell)}")))
    lost = [place for rule, place, _ in found if rule == "trial-arguments"]
    assert lost == [f"{SCRIPT}.{at}"] * bool(at)


#: A parameter that is there for one category alone.
ON_A = (
    "conditionalParameterSpecs: [{parentCategoricalValues: {values: [a]}, "
    "parameterSpec: {parameterId: w, discreteValueSpec: {values: [1, 2]}}}]"
)
GRID = """\
maxTrialCount: TRIALS
parallelTrialCount: 1
studySpec:
  algorithm: GRID_SEARCH
  metrics: [{metricId: a, goal: MINIMIZE}]
  parameters:
    - {parameterId: x, integerValueSpec: {minValue: 1, maxValue: 4}}
    - {parameterId: y, discreteValueSpec: {values: [1, 2, 3]}}
    - {parameterId: z, categoricalValueSpec: {values: [a, b]}}
""" + RIGHT[RIGHT.index("trialJobSpec") :]


@pytest.mark.parametrize(
    ("trials", "edit", "expected"),
    [
        (24, ("", ""), []),
        (23, ("", ""), [("grid-size", "maxTrialCount", "23")]),
        (1, ("", ""), [("grid-size", "maxTrialCount", "1")]),
        # What depends on a value multiplies that one alone; a range of fractions has no points.
        (1, ("values: [a, b]}", f"values: [a, b]}}, {ON_A}"), []),
        (
            1,
            ("integerValueSpec", "doubleValueSpec"),
            [("grid-search", "studySpec.parameters[0].doubleValueSpec", "x")],
        ),
        # Any other search has ten trials for each parameter.
        (30, ("GRID", "RANDOM"), []),
        (29, ("GRID", "RANDOM"), [("few-trials", "maxTrialCount", "29")]),
        (1, ("GRID", "RANDOM"), [("few-trials", "maxTrialCount", "1")]),
    ],
)
def test_a_grid_has_as_many_points_as_its_values_make(trials, edit, expected):
    assert told(GRID.replace("TRIALS", str(trials)).replace(*edit)) == expected
