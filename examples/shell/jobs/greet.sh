#!/bin/sh
# The payload comes on stdin, what the job is stands in the environment.
set -eu
payload=$(cat)
echo "job $KHEPRI_JOB_ID, attempt $KHEPRI_JOB_ATTEMPT of $KHEPRI_JOB_TRIES: $payload" >>greetings.log
