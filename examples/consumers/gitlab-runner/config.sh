#!/bin/sh
# config_exec of GitLab Runner's custom executor: chooses the folder in which the other stages find the job's node.
# Its name is random, so that no variable of a job leads to the node of another one.
set -eu
folder=$(mktemp -u "${TMPDIR:-/tmp}/nodepool-job-XXXXXXXXXXXX")
jq -n --arg folder "$folder" '{driver: {name: "Nodepool"}, job_env: {NODEPOOL_JOB: $folder}}'
