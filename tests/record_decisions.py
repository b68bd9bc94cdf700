"""Writes the recorded decisions again after a change that is meant: `python -m tests.record_decisions`, a minute.

Look at the difference that git shows: it is what the change does to some thousand diagnoses.
"""

import runpy

RECORDED = (
    "tests.test_recorded_reports",
    "tests.test_changed_machines",
    "tests.symptoms.test_every_row",
    "tests.conclusions.test_every_symptom",
    "tests.checks.test_every_pair",
    "tests.checks.conftest",
    "tests.remedies.test_every_fix",
    "tests.reporters.test_pictures",
    "tests.tuning.test_recorded_runs",
    "tests.tuning.test_every_search",
)

if __name__ == "__main__":
    for module in RECORDED:
        runpy.run_module(module, run_name="__main__")
