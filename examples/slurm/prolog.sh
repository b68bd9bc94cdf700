#!/bin/sh
# A Slurm prolog (Prolog= in slurm.conf), run as root on each node before a job starts on it. A failure drains the
# node and requeues the job, so that it starts on another one. GPUs that the job did not request do not matter.
[ -n "$SLURM_JOB_GPUS" ] || exit 0
if ! report=$(gpudoctor check --fast --timeout 20 --require 'gpu>=1' 2>&1); then
    logger --tag gpudoctor "job $SLURM_JOB_ID: $report"
    exit 1
fi
