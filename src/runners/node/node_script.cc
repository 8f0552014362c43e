#include "runners/node/node_script.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/text.h"

namespace nodepool::runners {
namespace {

// Each program's part: `check` says whether it is there, `begin` starts it with the configuration in $config,
// and sets what its log says when it waits for a job, and which of its processes runs one.
struct Program {
  std::string_view check;
  std::string_view begin;
  std::string_view watch;
};

constexpr Program kGithubProgram = {
    .check = R"sh(  [ -x {1}/run.sh ] || refuse "{1}/run.sh is not there")sh",
    .begin = R"sh(    cd {1} || refuse "{1} cannot be entered"
    [ {2} != yes ] || export RUNNER_ALLOW_RUNASROOT=1
    export ACTIONS_RUNNER_INPUT_JITCONFIG="$config" RUNNER_MANUALLY_TRAP_SIG=1 ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=1
    begin ./run.sh
    unset ACTIONS_RUNNER_INPUT_JITCONFIG)sh",
    .watch = R"sh(online='Listening for Jobs' worker='Runner[.]Worker' depth=1)sh"};

// The configuration is a line of words: address, uuid, token, handle, labels. The token is in a file in
// memory.
constexpr Program kForgejoProgram = {
    .check =
        R"sh(  [ -x {1}/forgejo-runner ] || command -v forgejo-runner >/dev/null || refuse "there is neither {1}/forgejo-runner nor forgejo-runner in the PATH")sh",
    .begin = R"sh(    program=$HOME/{1}/forgejo-runner
    [ -x "$program" ] || program=$(command -v forgejo-runner)
    set -f
    set -- $config
    [ $# -eq 5 ] || refuse "the configuration has other words than expected"
    place=/dev/shm
    [ -w "$place" ] || place=$run
    export NODEPOOL_TOKEN_FILE=$(mktemp "$place/nodepool-token-XXXXXX")
    printf %s "$3" >"$NODEPOOL_TOKEN_FILE"
    url=$1 uuid=$2 handle=$4 labels=$5 IFS=,
    set --
    for label in $labels; do set -- "$@" --label "$label:host"; done
    unset IFS
    begin "$program" one-job --url "$url" --uuid "$uuid" --token-url "file:$NODEPOOL_TOKEN_FILE" --handle "$handle" --wait "$@")sh",
    .watch = R"sh(online= worker= depth=2)sh"};

const Program& ProgramOf(const RunnerOnNode& runner) {
  return runner.program == RunnerProgram::kForgejo ? kForgejoProgram : kGithubProgram;
}

// {0}: the run, {1}: the runner's folder, {2}: "yes" if it may be root; CHECK, BEGIN and WATCH: the program's
// parts.
//
// The folder `started` decides: it can be made once. Folders of runs that ended a day ago go, for hosts that
// are used again. A beat each ten seconds ends the script when nobody reads it any more. A process of the
// runner runs a job that is so deep below it, and whose line has the worker's name.
constexpr std::string_view kStart = R"sh(umask 077
say() {{ printf 'nodepool-runner: %s\n' "$*" || exit 0; }}
refuse() {{ say refused "$*"; exit 0; }}
begin() {{
  setsid sh -c 'umask 022; run=$1; shift; "$@"; status=$?; [ -z "$NODEPOOL_TOKEN_FILE" ] || rm -f "$NODEPOOL_TOKEN_FILE"
    echo $status >"$run/status.new"; mv "$run/status.new" "$run/status"' sh "$run" "$@" </dev/null >"$run/log" 2>&1 &
  echo $! >"$run/pid.new" && mv "$run/pid.new" "$run/pid"
}}
is_ready() {{ [ -z "$online" ] || grep -q "$online" "$run/log"; }}
cd "$HOME" || refuse "the user has no home"
base=$HOME/.nodepool-runner
run=$base/{0}
WATCH
[ "$(id -u)" != 0 ] || [ {2} = yes ] || refuse "the user is root, which only user: root permits"
mkdir -p "$run" || refuse "$run cannot be made"
if [ ! -d "$run/started" ]; then
CHECK
  find "$base" -mindepth 2 -maxdepth 2 -name status -mmin +1440 2>/dev/null | while read -r old; do rm -rf "${{old%/status}}"; done
  say ready
  IFS= read -r config || exit 0
  [ -n "$config" ] || exit 0
  if mkdir "$run/started" 2>/dev/null; then
BEGIN
  fi
  unset config
fi
say started
is_online= has_job= beats=0 misses=0
while :; do
  if [ -f "$run/status" ]; then
    [ -n "$is_online" ] || ! is_ready || say online
    [ -n "$has_job" ] || ! grep -q 'Running job' "$run/log" || say job
    ! grep -q 'is deprecated and cannot receive messages' "$run/log" || say deprecated
    say ended "$(cat "$run/status")"
    exit 0
  fi
  pid=$(cat "$run/pid" 2>/dev/null)
  if [ -z "$pid" ] || ! kill -0 "$pid" 2>/dev/null; then
    misses=$((misses + 1))
    [ $misses -lt 3 ] || {{ say ended -1; exit 0; }}
    sleep 1
    continue
  fi
  if [ -z "$is_online" ]; then
    if is_ready; then
      say version "$(sed -n "s/^Current runner version: '\([0-9.]*\)'.*/\1/p" "$run/log" | head -n 1)"
      say online
      is_online=yes
    fi
  elif [ -z "$has_job" ]; then
    if ps -eo pid=,ppid=,args= | awk -v top="$pid" -v worker="$worker" -v depth="$depth" '
        {{ parent[$1] = $2; if ($0 ~ worker) candidate[$1] = 1 }}
        END {{ for (p in candidate) {{ n = 0; for (q = p; (q in parent) && n < 100; q = parent[q]) {{ if (q == top && n >= depth) found = 1; n++ }} }} exit !found }}'; then
      say job
      has_job=yes
    fi
  fi
  if [ -z "$is_online" ]; then sleep 0.2; beats=$((beats + 1)); else sleep 1; beats=$((beats + 5)); fi
  [ $beats -lt 50 ] || {{ say beat; beats=0; }}
done)sh";

std::string ScriptOf(const Program& program) {
  std::string script(kStart);
  for (auto [name, part] : {std::pair<std::string_view, std::string_view>{"WATCH", program.watch},
                            {"CHECK", program.check},
                            {"BEGIN", program.begin}})
    script.replace(script.find(name), name.size(), part);
  return script;
}

constexpr std::string_view kEnd = R"sh(run=$HOME/.nodepool-runner/{0}
pid=$(cat "$run/pid" 2>/dev/null) || exit 0
kill -s TERM -- "-$pid" 2>/dev/null || exit 0
tries=0
while kill -s 0 -- "-$pid" 2>/dev/null && [ $tries -lt 25 ]; do sleep 0.2; tries=$((tries + 1)); done
kill -s KILL -- "-$pid" 2>/dev/null
exit 0)sh";

// For any login shell; the scripts have no control characters but line ends.
std::string InShell(const std::string& script) {
  std::string line = "exec /bin/sh -c '";
  for (char letter : script) line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return line + "'";
}

constexpr std::size_t kMaxText = 200;
constexpr int kUnknownStatus = -1;

constexpr std::pair<std::string_view, NodeReport::Kind> kReports[] = {
    {"ready", NodeReport::Kind::kReady},           {"started", NodeReport::Kind::kStarted},
    {"online", NodeReport::Kind::kOnline},         {"job", NodeReport::Kind::kWorker},
    {"ended", NodeReport::Kind::kEnded},           {"refused", NodeReport::Kind::kRefused},
    {"deprecated", NodeReport::Kind::kDeprecated}, {"version", NodeReport::Kind::kVersion}};

int StatusIn(std::string_view text) {
  int status = kUnknownStatus;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  bool is_good = error == std::errc() && end == text.data() + text.size() && status >= 0 && status <= 255;
  return is_good ? status : kUnknownStatus;
}

}  // namespace

std::string StartLine(const RunnerOnNode& runner) {
  return InShell(fmt::format(fmt::runtime(ScriptOf(ProgramOf(runner))), runner.run.value, runner.folder,
                             runner.may_be_root ? "yes" : "no"));
}

std::string EndLine(const RunnerOnNode& runner) { return InShell(fmt::format(kEnd, runner.run.value)); }

std::optional<NodeReport> ReadReport(std::string_view line) {
  if (!line.starts_with(kReportMark)) return std::nullopt;
  line.remove_prefix(kReportMark.size());
  line = Trim(line);
  std::size_t blank = std::min(line.find(' '), line.size());
  std::string_view word = line.substr(0, blank);
  std::string_view rest = Trim(line.substr(blank));
  for (const auto& [name, kind] : kReports) {
    if (name != word) continue;
    return NodeReport{kind, kind == NodeReport::Kind::kEnded ? StatusIn(rest) : 0, Excerpt(rest, kMaxText)};
  }
  return std::nullopt;
}

}  // namespace nodepool::runners
