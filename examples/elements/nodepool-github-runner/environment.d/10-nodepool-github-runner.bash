# GitHub's archive of the runner: a file of the builder's host, or an address.
export DIB_GITHUB_RUNNER_ARCHIVE=${DIB_GITHUB_RUNNER_ARCHIVE:-}
# Its digest, as GitHub publishes it; an archive with another one ends the build.
export DIB_GITHUB_RUNNER_SHA256=${DIB_GITHUB_RUNNER_SHA256:-}
# Who runs jobs; made where there is no such user.
export DIB_GITHUB_RUNNER_USER=${DIB_GITHUB_RUNNER_USER:-zuul}
