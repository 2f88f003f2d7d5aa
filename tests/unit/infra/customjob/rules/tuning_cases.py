"""Wrong tuning files: each is the right one below with one edit, and breaks exactly one rule."""

from dataclasses import dataclass

RIGHT = """\
displayName: tune
maxTrialCount: 60
parallelTrialCount: 3
maxFailedTrialCount: 2
studySpec:
  algorithm: RANDOM_SEARCH
  measurementSelectionType: BEST_MEASUREMENT
  metrics:
    - metricId: accuracy
      goal: MAXIMIZE
  parameters:
    - parameterId: learning_rate
      scaleType: UNIT_LOG_SCALE
      doubleValueSpec: {minValue: 1e-4, maxValue: 0.1}
    - parameterId: layers
      scaleType: UNIT_LINEAR_SCALE
      integerValueSpec: {minValue: 1, maxValue: 4}
    - parameterId: batch
      discreteValueSpec: {values: [16, 32, 64]}
    - parameterId: optimizer
      categoricalValueSpec: {values: [adam, sgd]}
      conditionalParameterSpecs:
        - parentCategoricalValues: {values: [sgd]}
          parameterSpec:
            parameterId: momentum
            discreteValueSpec: {values: [0.5, 0.9]}
trialJobSpec:
  serviceAccount: ${serviceAccounts.trainer}
  baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/x/${job.requestId}"}
  scheduling: {timeout: 3600s}
  workerPoolSpecs:
    - machineSpec: {machineType: n1-standard-4}
      containerSpec:
        imageUri: ${images.trainer}
        args: [--epochs=5]
"""


@dataclass(frozen=True)
class Case:
    """``old`` of the right file becomes ``new``; ``at`` is the path that the problem names."""

    name: str
    old: str
    new: str
    rule: str
    at: str = ""
    level: str = "error"


DOUBLE = "doubleValueSpec: {minValue: 1e-4, maxValue: 0.1}"
WHOLE = "integerValueSpec: {minValue: 1, maxValue: 4}"
DISCRETE = "discreteValueSpec: {values: [16, 32, 64]}"
CATEGORIES = "categoricalValueSpec: {values: [adam, sgd]}"
CONDITION = "parentCategoricalValues: {values: [sgd]}"
METRIC = "    - metricId: accuracy\n      goal: MAXIMIZE\n"
STUDY = RIGHT[RIGHT.index("studySpec") : RIGHT.index("trialJobSpec")]
TRIAL = RIGHT[RIGHT.index("trialJobSpec") :]
ARGS = "        args: [--epochs=5]"
P0, P1, P2, P3 = (f"studySpec.parameters[{index}]" for index in range(4))
C0 = f"{P3}.conditionalParameterSpecs[0]"
TASK = "trialJobSpec.workerPoolSpecs[0].containerSpec"

CASES = [
    Case("no study", STUDY, "", "study-metrics"),
    Case(
        "an empty study has no parameters",
        STUDY,
        "studySpec:\n  metrics: [{metricId: a, goal: MINIMIZE}]\n",
        "study-parameters",
        "studySpec",
    ),
    Case("no trial job", TRIAL, "", "job-spec"),
    Case("no metrics", f"  metrics:\n{METRIC}", "", "study-metrics", "studySpec"),
    Case(
        "an empty list of metrics",
        f"metrics:\n{METRIC}",
        "metrics: []\n",
        "study-metrics",
        "studySpec",
    ),
    Case(
        "a metric without a goal",
        "      goal: MAXIMIZE\n",
        "",
        "metric-goal",
        "studySpec.metrics[0]",
    ),
    Case(
        "a goal that is left open",
        "goal: MAXIMIZE",
        "goal: GOAL_TYPE_UNSPECIFIED",
        "metric-goal",
        "studySpec.metrics[0].goal",
        "warning",
    ),
    Case(
        "a goal in other words",
        "goal: MAXIMIZE",
        "goal: MAX",
        "enum-value",
        "studySpec.metrics[0].goal",
    ),
    Case(
        "a metric without an id",
        "- metricId: accuracy\n      goal",
        "- goal",
        "metric-id",
        "studySpec.metrics[0]",
    ),
    Case(
        "a metric with a space",
        "metricId: accuracy",
        "metricId: the accuracy",
        "metric-id",
        "studySpec.metrics[0].metricId",
    ),
    Case(
        "two metrics of one id",
        METRIC,
        METRIC + METRIC,
        "metric-id",
        "studySpec.metrics[1].metricId",
    ),
    Case(
        "only safety metrics",
        "goal: MAXIMIZE",
        "goal: MAXIMIZE\n      safetyConfig: {safetyThreshold: 1}",
        "metric-safety",
        "studySpec.metrics",
    ),
    Case(
        "a share above one",
        METRIC,
        METRIC + "    - metricId: heat\n      goal: MINIMIZE\n      "
        "safetyConfig: {desiredMinSafeTrialsFraction: 50}\n",
        "metric-safety",
        "studySpec.metrics[1].safetyConfig.desiredMinSafeTrialsFraction",
    ),
    Case(
        "a parameter without an id",
        "- parameterId: layers\n      scale",
        "- scale",
        "parameter-id",
        P1,
    ),
    Case(
        "an id with a space",
        "parameterId: layers",
        "parameterId: the layers",
        "parameter-id",
        f"{P1}.parameterId",
    ),
    Case(
        "an id twice",
        "parameterId: layers",
        "parameterId: batch",
        "parameter-id",
        f"{P2}.parameterId",
    ),
    Case(
        "a conditional id of another parameter",
        "parameterId: momentum",
        "parameterId: layers",
        "parameter-id",
        f"{C0}.parameterSpec.parameterId",
    ),
    Case(
        "an id with its dashes",
        "parameterId: layers",
        "parameterId: --layers",
        "parameter-id-argument",
        f"{P1}.parameterId",
        "warning",
    ),
    Case("a parameter without values", f"      {DISCRETE}\n", "", "parameter-values", P2),
    Case("two kinds of values", DISCRETE, f"{DISCRETE}\n      {WHOLE}", "one-of", P2),
    Case(
        "a list without values",
        DISCRETE,
        "discreteValueSpec: {values: []}",
        "parameter-values",
        f"{P2}.discreteValueSpec",
    ),
    Case(
        "no categories",
        CATEGORIES.split(": ", 1)[1] + "\n      cond",
        "{}\n      cond",
        "parameter-values",
        f"{P3}.categoricalValueSpec",
    ),
    Case(
        "bounds in the wrong order",
        WHOLE,
        "integerValueSpec: {minValue: 4, maxValue: 1}",
        "parameter-range",
        f"{P1}.integerValueSpec.maxValue",
    ),
    Case(
        "a range of one value",
        WHOLE,
        "integerValueSpec: {minValue: 4, maxValue: 4}",
        "parameter-range",
        f"{P1}.integerValueSpec",
        "warning",
    ),
    Case(
        "a range without its lower bound",
        WHOLE,
        "integerValueSpec: {maxValue: 4}",
        "parameter-range",
        f"{P1}.integerValueSpec",
        "warning",
    ),
    Case(
        "a bound that is no number",
        DOUBLE,
        "doubleValueSpec: {minValue: low, maxValue: 0.1}",
        "wrong-type",
        f"{P0}.doubleValueSpec.minValue",
    ),
    Case(
        "a bound that is infinite",
        DOUBLE,
        "doubleValueSpec: {minValue: 1e-4, maxValue: .inf}",
        "number-range",
        f"{P0}.doubleValueSpec.maxValue",
    ),
    Case(
        "an integer with a fraction",
        WHOLE,
        "integerValueSpec: {minValue: 1, maxValue: 4.5}",
        "wrong-type",
        f"{P1}.integerValueSpec.maxValue",
    ),
    Case(
        "an octal number",
        DISCRETE,
        "discreteValueSpec: {values: [010, 32]}",
        "yaml-number",
        f"{P2}.discreteValueSpec.values[0]",
    ),
    Case(
        "a log scale from zero",
        DOUBLE,
        "doubleValueSpec: {minValue: 0, maxValue: 0.1}",
        "parameter-scale",
        f"{P0}.doubleValueSpec",
    ),
    Case(
        "a log scale from below zero",
        DOUBLE,
        "doubleValueSpec: {minValue: -1, maxValue: 0.1}",
        "parameter-scale",
        f"{P0}.doubleValueSpec",
    ),
    Case(
        "a reverse log scale from zero",
        f"UNIT_LINEAR_SCALE\n      {WHOLE}",
        "UNIT_REVERSE_LOG_SCALE\n      integerValueSpec: {minValue: 0, maxValue: 4}",
        "parameter-scale",
        f"{P1}.integerValueSpec",
    ),
    Case(
        "discrete values from zero on a log scale",
        DISCRETE,
        "scaleType: UNIT_LOG_SCALE\n      discreteValueSpec: {values: [0, 1]}",
        "parameter-scale",
        f"{P2}.discreteValueSpec",
    ),
    Case(
        "categories with a scale",
        CATEGORIES,
        f"scaleType: UNIT_LINEAR_SCALE\n      {CATEGORIES}",
        "parameter-scale",
        f"{P3}.scaleType",
        "warning",
    ),
    Case(
        "discrete values out of order",
        DISCRETE,
        "discreteValueSpec: {values: [16, 64, 32]}",
        "parameter-discrete",
        f"{P2}.discreteValueSpec.values[2]",
    ),
    Case(
        "a discrete value twice",
        DISCRETE,
        "discreteValueSpec: {values: [16, 16]}",
        "parameter-discrete",
        f"{P2}.discreteValueSpec.values[1]",
    ),
    Case(
        "more than a thousand values",
        DISCRETE,
        f"discreteValueSpec: {{values: {list(range(1, 1003))}}}",
        "parameter-discrete",
        f"{P2}.discreteValueSpec.values",
    ),
    Case(
        "a category twice",
        CATEGORIES,
        "categoricalValueSpec: {values: [adam, sgd, adam]}",
        "parameter-categories",
        f"{P3}.categoricalValueSpec.values",
        "warning",
    ),
    Case(
        "one value alone",
        DISCRETE,
        "discreteValueSpec: {values: [16]}",
        "parameter-categories",
        f"{P2}.discreteValueSpec.values",
        "warning",
    ),
    Case(
        "a default value of a range",
        DOUBLE,
        "doubleValueSpec: {minValue: 1e-4, maxValue: 0.1, defaultValue: 0.01}",
        "vizier-only",
        f"{P0}.doubleValueSpec.defaultValue",
    ),
    Case(
        "a default value out of its range",
        WHOLE,
        "integerValueSpec: {minValue: 1, maxValue: 4, defaultValue: 9}",
        "vizier-only",
        f"{P1}.integerValueSpec.defaultValue",
    ),
    Case(
        "a default category",
        CATEGORIES,
        "categoricalValueSpec: {values: [adam, sgd], defaultValue: sgd}",
        "vizier-only",
        f"{P3}.categoricalValueSpec.defaultValue",
    ),
    Case(
        "a level of noise",
        "algorithm: RANDOM",
        "observationNoise: LOW\n  algorithm: RANDOM",
        "vizier-only",
        "studySpec.observationNoise",
    ),
    Case(
        "a condition on a category that is not there",
        CONDITION,
        "parentCategoricalValues: {values: [lion]}",
        "parameter-condition",
        f"{C0}.parentCategoricalValues.values[0]",
    ),
    Case(
        "a condition of another type",
        CONDITION,
        "parentIntValues: {values: [1]}",
        "parameter-condition",
        f"{C0}.parentIntValues",
    ),
    Case(
        "a condition without values",
        CONDITION,
        "parentCategoricalValues: {values: []}",
        "parameter-condition",
        f"{C0}.parentCategoricalValues",
    ),
    Case(
        "no condition",
        f"{CONDITION}\n          parameterSpec",
        "parameterSpec",
        "parameter-condition",
        C0,
    ),
    Case(
        "a condition on nothing",
        """
          parameterSpec:
            parameterId: momentum
            discreteValueSpec: {values: [0.5, 0.9]}
""",
        "\n",
        "parameter-condition",
        C0,
    ),
    Case(
        "one id under overlapping conditions",
        f"        - {CONDITION}\n",
        f"""\
        - {CONDITION}
          parameterSpec: {{parameterId: momentum, integerValueSpec: {{minValue: 1, maxValue: 2}}}}
        - {CONDITION}
""",
        "parameter-condition",
        f"{P3}.conditionalParameterSpecs[1].parentCategoricalValues",
    ),
    Case(
        "a grid over a range of fractions",
        "RANDOM_SEARCH",
        "GRID_SEARCH",
        "grid-search",
        f"{P0}.doubleValueSpec",
    ),
    Case(
        "an algorithm of another tool",
        "RANDOM_SEARCH",
        "BAYESIAN",
        "enum-value",
        "studySpec.algorithm",
    ),
    Case(
        "fewer trials than advised",
        "maxTrialCount: 60",
        "maxTrialCount: 20",
        "few-trials",
        "maxTrialCount",
        "note",
    ),
    Case(
        "stopping by the median",
        "algorithm: RANDOM",
        "medianAutomatedStoppingSpec: {}\n  algorithm: RANDOM",
        "early-stopping",
        "studySpec.medianAutomatedStoppingSpec",
        "warning",
    ),
    Case(
        "two ways of stopping",
        "algorithm: RANDOM",
        "medianAutomatedStoppingSpec: {}\n  decayCurveStoppingSpec: {}\n  algorithm: RANDOM",
        "one-of",
        "studySpec",
    ),
    Case(
        "stopping with bounds that exclude each other",
        "algorithm: RANDOM",
        "studyStoppingConfig: {minNumTrials: 9, maxNumTrials: 5}\n  algorithm: RANDOM",
        "study-stopping",
        "studySpec.studyStoppingConfig.minNumTrials",
        "warning",
    ),
    Case(
        "an end that is no point in time",
        "algorithm: RANDOM",
        "studyStoppingConfig: {maximumRuntimeConstraint: {endTime: tomorrow}}\n  algorithm: RANDOM",
        "timestamp-format",
        "studySpec.studyStoppingConfig.maximumRuntimeConstraint.endTime",
    ),
    Case("no number of trials", "maxTrialCount: 60\n", "", "trial-count", level="warning"),
    Case(
        "nothing said of parallel ones", "parallelTrialCount: 3\n", "", "trial-count", level="note"
    ),
    Case("no trial", "maxTrialCount: 60", "maxTrialCount: 0", "trial-count", "maxTrialCount"),
    Case(
        "nothing in parallel",
        "parallelTrialCount: 3",
        "parallelTrialCount: 0",
        "trial-count",
        "parallelTrialCount",
    ),
    Case(
        "more in parallel than there are",
        "parallelTrialCount: 3",
        "parallelTrialCount: 61",
        "trial-parallel",
        "parallelTrialCount",
        "warning",
    ),
    Case(
        "more failures than trials",
        "maxFailedTrialCount: 2",
        "maxFailedTrialCount: 61",
        "trial-failures",
        "maxFailedTrialCount",
    ),
    Case(
        "fewer failures than none",
        "maxFailedTrialCount: 2",
        "maxFailedTrialCount: -1",
        "trial-failures",
        "maxFailedTrialCount",
    ),
    Case(
        "a count as a word",
        "maxTrialCount: 60",
        "maxTrialCount: many",
        "wrong-type",
        "maxTrialCount",
    ),
    Case(
        "a count beyond 32 bits",
        "maxTrialCount: 60",
        "maxTrialCount: 4000000000",
        "number-range",
        "maxTrialCount",
    ),
    Case(
        "no output directory",
        '  baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/x/${job.requestId}"}\n',
        "",
        "trial-output",
        "trialJobSpec",
        "warning",
    ),
    Case(
        "bash that loses the arguments",
        ARGS,
        '        command: [bash, -c, "python train.py"]',
        "trial-arguments",
        f"{TASK}.command[2]",
        "warning",
    ),
    Case(
        "a shell in args that loses them",
        ARGS,
        '        command: [/bin/sh]\n        args: [-ec, "cd /app && python train.py"]',
        "trial-arguments",
        f"{TASK}.args[1]",
        "warning",
    ),
    Case(
        "bash that loses the first argument",
        ARGS,
        """        command: [bash, -c, 'python train.py "$@"']""",
        "trial-arguments",
        f"{TASK}.command[2]",
        "warning",
    ),
    Case(
        "a fixed value of a parameter",
        "--epochs=5",
        "--layers=5",
        "trial-argument-twice",
        f"{TASK}.args[0]",
        "warning",
    ),
    Case(
        "the pools at the top",
        "maxTrialCount: 60",
        "maxTrialCount: 60\nworkerPoolSpecs: []",
        "misplaced-field",
        "workerPoolSpecs",
    ),
    Case(
        "the parameters at the top",
        "maxTrialCount: 60",
        "maxTrialCount: 60\nparameters: []",
        "misplaced-field",
        "parameters",
    ),
    Case(
        "a job's own spec",
        "maxTrialCount: 60",
        "maxTrialCount: 60\njobSpec: {}",
        "unknown-field",
        "jobSpec",
    ),
    Case(
        "a field of AI Platform",
        "maxTrialCount: 60",
        "maxTrialCount: 60\nmaxParallelTrials: 4",
        "unknown-field",
        "maxParallelTrials",
    ),
    Case(
        "trials that are written",
        "maxTrialCount: 60",
        "maxTrialCount: 60\ntrials: []",
        "output-field",
        "trials",
        "warning",
    ),
    Case(
        "a machine that is not there",
        "n1-standard-4",
        "n1-standard-5",
        "machine-type",
        "trialJobSpec.workerPoolSpecs[0].machineSpec.machineType",
    ),
    Case(
        "a tag that moves",
        "${images.trainer}",
        "us-docker.pkg.dev/acme/x/t:latest",
        "image-pinned",
        f"{TASK}.imageUri",
        "note",
    ),
    Case(
        "a field at the wrong place of a trial",
        "scheduling: {timeout: 3600s}",
        "scheduling: {timeout: 3600s}\n  kmsKeyName: x",
        "unknown-field",
        "trialJobSpec.kmsKeyName",
    ),
    Case(
        "a label of the stack",
        "displayName: tune",
        "displayName: tune\nlabels: {vt-tuning-run: '1'}",
        "label-reserved",
        "labels.vt-tuning-run",
        "warning",
    ),
    Case(
        "learning by a parameter that is not there",
        "algorithm: RANDOM",
        "convexAutomatedStoppingSpec: {learningRateParameterName: lr}\n  algorithm: RANDOM",
        "learning-rate-name",
        "studySpec.convexAutomatedStoppingSpec.learningRateParameterName",
        "warning",
    ),
    Case(
        "a grid larger than the job",
        STUDY,
        STUDY[: STUDY.index("    - parameterId: learning")].replace("RANDOM", "GRID")
        + "    - parameterId: width\n      integerValueSpec: {minValue: 1, maxValue: 64}\n",
        "grid-size",
        "maxTrialCount",
        "warning",
    ),
]
