#include "runners/node/runner_nodes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "async/deadline.h"
#include "base/text.h"
#include "net/ssh/ssh_files.h"
#include "process/supervisor.h"

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
constexpr std::string_view kStart = R"sh(login_mask=$(umask)
umask 077
say() {{ printf 'nodepool-runner: %s\n' "$*" || exit 0; }}
refuse() {{ say refused "$*"; exit 0; }}
begin() {{
  setsid sh -c 'umask "$1"; run=$2; shift 2; "$@"; status=$?; [ -z "$NODEPOOL_TOKEN_FILE" ] || rm -f "$NODEPOOL_TOKEN_FILE"
    echo $status >"$run/status.new"; mv "$run/status.new" "$run/status"' sh "$login_mask" "$run" "$@" </dev/null >"$run/log" 2>&1 &
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

namespace {

namespace asio = boost::asio;

constexpr std::size_t kLongestLine = 8 * 1024;
constexpr std::size_t kLongestComplaint = 300;
constexpr Duration kEndTime = std::chrono::seconds(15);

// Both ends of a pipe; each is closed unless it was taken.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0)
      throw Error(Verdict::kFail, std::string("No pipe for a session with a node: ") + std::strerror(errno));
  }
  ~Pipe() {
    for (int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  int TakeReading() { return std::exchange(ends_[0], -1); }
  int TakeWriting() { return std::exchange(ends_[1], -1); }

 private:
  int ends_[2] = {-1, -1};
};

net::LoginOptions LoginOf(const RunnerPlace& place) {
  net::LoginOptions login{.accepts_any_key = true};
  if (!place.key.empty()) login.identity = place.key;
  return login;
}

std::vector<std::string> SshWords(const net::SshFiles& files, const RunnerPlace& place, std::string line) {
  std::vector<std::string> words = files.Words("ssh");
  for (const char* option : {"ControlMaster=no", "ControlPath=none", "ForwardAgent=no", "ForwardX11=no",
                             "ClearAllForwardings=yes", "RequestTTY=no"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {place.node.id, std::move(line)});
  return words;
}

class SshSession : public NodeSession {
 public:
  SshSession(Loop& loop, const RunnerPlace& place)
      : files_({place.node}, LoginOf(place)), output_(loop.context()), input_(loop.context()) {
    Pipe output;
    Pipe input;
    process::ForegroundCommand command{.argv = SshWords(files_, place, StartLine(place.runner)),
                                       .ignores_interruption = true,
                                       .output = output.writing(),
                                       .input = input.reading()};
    ssh_.emplace(loop, command);
    output_.assign(output.TakeReading());
    input_.assign(input.TakeWriting());
  }

  Task<std::optional<NodeReport>> Next() override;
  Task<> HandOver(std::string configuration) override;
  std::string Complaint() const override { return complaint_; }

 private:
  std::optional<std::string> TakeLine();

  net::SshFiles files_;
  asio::posix::stream_descriptor output_;
  asio::posix::stream_descriptor input_;
  std::optional<process::ForegroundProcess> ssh_;
  std::string pending_;
  std::string complaint_;
};

// A line that is too long ends where it is.
std::optional<std::string> SshSession::TakeLine() {
  std::size_t end = pending_.find('\n');
  if (end == std::string::npos) {
    if (pending_.size() < kLongestLine) return std::nullopt;
    return std::exchange(pending_, "");
  }
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

Task<std::optional<NodeReport>> SshSession::Next() {
  std::array<char, 4096> buffer;
  for (;;) {
    while (std::optional<std::string> line = TakeLine()) {
      std::optional<NodeReport> report = ReadReport(*line);
      if (report) co_return report;
      bool is_beat = line->starts_with(kReportMark);
      if (!is_beat && !Trim(*line).empty()) complaint_ = Excerpt(*line, kLongestComplaint);
    }
    boost::system::error_code error;
    std::size_t size = co_await output_.async_read_some(asio::buffer(buffer),
                                                        asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
    if (error) co_return std::nullopt;
    pending_.append(buffer.data(), size);
  }
}

Task<> SshSession::HandOver(std::string configuration) {
  configuration += '\n';
  boost::system::error_code error;
  co_await asio::async_write(input_, asio::buffer(configuration),
                             asio::redirect_error(asio::use_awaitable, error));
  OPENSSL_cleanse(configuration.data(), configuration.size());
  if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
  if (error) throw Error(Verdict::kRetry, "the session with the node is over");
}

Task<> AwaitExit(process::ForegroundProcess& program) { co_await program.Wait(); }

}  // namespace

std::unique_ptr<NodeSession> SshNodes::Open(RunnerPlace place) {
  return std::make_unique<SshSession>(loop_, place);
}

Task<> SshNodes::EndRunner(RunnerPlace place) {
  net::SshFiles files({place.node}, LoginOf(place));
  Pipe output;
  process::ForegroundCommand command{.argv = SshWords(files, place, EndLine(place.runner)),
                                     .ignores_interruption = true,
                                     .output = output.writing()};
  process::ForegroundProcess ssh(loop_, command);
  SteadyTime deadline = loop_.SteadyNow() + kEndTime;
  co_await EndsBy(loop_, deadline, "ending a runner on its node", AwaitExit(ssh));
}

}  // namespace nodepool::runners
