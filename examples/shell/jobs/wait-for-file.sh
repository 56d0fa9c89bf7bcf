#!/bin/sh
# Not ready yet: asks to be run again in a second, which uses no attempt.
set -eu
[ -e ready ] || echo '{"release":"1s"}' >"$KHEPRI_JOB_RESULT"
