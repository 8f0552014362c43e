#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/loop.h"
#include "async/task.h"
#include "net/ssh/ssh_node.h"
#include "runners/node/node_script.h"

namespace nodepool::runners {

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
