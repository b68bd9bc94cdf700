#!/bin/sh
# Start a program only if its GPU can be used, instead of finding out hours later that it ran on the CPU:
#
#     examples/run_if_healthy.sh python train.py
#
# A finding (exit status 1) stops it, and so does an unknown verdict (exit status 3).
gpudoctor check --require 'gpu>=1' >&2 || exit
exec "$@"
