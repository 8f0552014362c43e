#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "async/task.h"
#include "model/runner.h"
#include "net/ssh/ssh_files.h"

namespace nodepool::runners {

// Whose program runs the job.
enum class RunnerProgram { kGithub, kForgejo };

// How a runner is started on its node.
struct RunnerOnNode {
  RunId run;
  std::string folder;  // of the runner's program, below the user's home or absolute; letters, digits, "/._-"
  bool may_be_root = false;  // whose home it is
  RunnerProgram program = RunnerProgram::kGithub;
};

// The line for the node's shell that starts the runner of the run, unless that was done before, and reports
// until its process has ended. It asks for the configuration, which is a secret, on standard
// input: one line. The runner goes on when the line's session ends; the line again watches the same runner.
// It never starts a second one for a run.
std::string StartLine(const RunnerOnNode& runner);

// The line that ends the run's processes, with SIGTERM, and after five seconds with SIGKILL.
std::string EndLine(const RunnerOnNode& runner);

// What the script says: a line that begins with kReportMark, a word and perhaps a
// text.
struct NodeReport {
  enum class Kind {
    kReady,       // nothing was started: it waits for the configuration
    kStarted,     // the runner's process has been started, now or before
    kOnline,      // it waits for a job
    kWorker,      // a process runs a job
    kEnded,       // the process has ended with `status`; -1: not known how
    kRefused,     // it cannot be started; `text` says why
    kDeprecated,  // the service refuses the runner's version, `text`
    kVersion,     // the runner's version, `text`
  };
  Kind kind = Kind::kReady;
  int status = 0;
  std::string text;  // without control characters, and short
};

inline constexpr std::string_view kReportMark = "nodepool-runner: ";

// nullopt: the line is no report, or one of its beats.
std::optional<NodeReport> ReadReport(std::string_view line);

// Where a runner is started, and as whom.
struct RunnerPlace {
  net::SshNode node;  // with the user who logs in
  std::string key;    // path of a private key; empty: what ssh finds
  RunnerOnNode runner;
};

// One session with a node: what its script reports, and the configuration for it. Its destruction ends the
// session; the runner goes on.
class NodeSession {
 public:
  virtual ~NodeSession() = default;
  // The next report; nullopt: the session is over, by itself or because the network failed.
  virtual Task<std::optional<NodeReport>> Next() = 0;
  // After kReady, once.
  virtual Task<> HandOver(std::string configuration) = 0;
  // What was said last besides reports, for log lines: short, without control characters.
  virtual std::string Complaint() const = 0;
};

// Reaches nodes. Implementations: SshNodes; a fake in tests.
class RunnerNodes {
 public:
  virtual ~RunnerNodes() = default;
  // Error(kFail): this host cannot begin a session.
  virtual std::unique_ptr<NodeSession> Open(RunnerPlace place) = 0;
  // Ends the run's processes, where that can be done within a short time; errors are left out.
  virtual Task<> EndRunner(RunnerPlace place) = 0;
};

// RunnerNodes by the program `ssh`, with the host keys of the node's record (runners.md 8).
class SshNodes : public RunnerNodes {
 public:
  explicit SshNodes(Loop& loop) : loop_(loop) {}

  std::unique_ptr<NodeSession> Open(RunnerPlace place) override;
  Task<> EndRunner(RunnerPlace place) override;

 private:
  Loop& loop_;
};

}  // namespace nodepool::runners
