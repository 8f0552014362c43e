#!/bin/sh
# run_exec of GitLab Runner's custom executor: runs one of the job's scripts, `run.sh SCRIPT STAGE`, on the node.
set -u
tool=${NODEPOOL_TOOL:-$(dirname "$0")/../shell/nodepool-lease}
"$tool" ssh "$NODEPOOL_JOB" bash <"$1"
status=$?
case $status in
  0) exit 0 ;;
  255) # ssh's own: the connection ended
    echo "The connection to the node ended or could not be made" >&2
    exit "${SYSTEM_FAILURE_EXIT_CODE:-2}"
    ;;
esac
# Newer runners read the script's own status here, for allow_failure:exit_codes.
[ -z "${BUILD_EXIT_CODE_FILE:-}" ] || echo "$status" >"$BUILD_EXIT_CODE_FILE"
exit "${BUILD_FAILURE_EXIT_CODE:-1}"
