"""The variables that are read from an environment, and no others."""

import re

from gpudoctor.data.environment_variables import environment_variables


def test_the_variables_that_checks_decide_from_are_in_the_table() -> None:
    names = {
        "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "CUDA_HOME",
        "NCCL_P2P_DISABLE",
        "OMP_NUM_THREADS",
    }
    assert names <= environment_variables()


def test_no_name_hints_at_a_secret() -> None:
    assert [name for name in environment_variables() if re.search("TOKEN|KEY|SECRET|PASS", name)] == []
