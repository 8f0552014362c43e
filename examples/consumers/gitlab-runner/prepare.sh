#!/bin/sh
# prepare_exec of GitLab Runner's custom executor: gets a node. Its label is the job's `image`, or NODEPOOL_LABEL.
set -u
tool=${NODEPOOL_TOOL:-$(dirname "$0")/../shell/nodepool-lease}
label=${CUSTOM_ENV_CI_JOB_IMAGE:-${NODEPOOL_LABEL:?there is no image in the job, and no NODEPOOL_LABEL}}
echo "Asking Nodepool for $label"
"$tool" get "$NODEPOOL_JOB" "$label" || exit "${SYSTEM_FAILURE_EXIT_CODE:-2}"
# In a session of its own: it has to outlive this stage, but not the runner, which is our parent.
setsid "$tool" keep "$NODEPOOL_JOB" "$PPID" </dev/null >>"$NODEPOOL_JOB/keep.log" 2>&1 &
jq -r '"The node is \(.nodes[0].id) of \(.nodes[0].provider)"' "$NODEPOOL_JOB/lease.json"
