#!/bin/sh
# cleanup_exec of GitLab Runner's custom executor: gives the node back, however far the job came.
set -u
[ -n "${NODEPOOL_JOB:-}" ] || exit 0
exec "${NODEPOOL_TOOL:-$(dirname "$0")/../shell/nodepool-lease}" return "$NODEPOOL_JOB"
