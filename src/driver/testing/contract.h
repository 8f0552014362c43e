#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"
#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_config.h"

namespace nodepool::driver::testing {

// What the framework expects of every adapter, as checks that run against a cloud: the real one, or a
// simulation. `nodepool-driver-test` runs them for any driver.

struct CheckResult {
  enum class Status {
    kPassed,
    kFailed,
    kSkipped,
    kNotRun,  // it needs a machine, and the first creation failed
  };
  std::string check;
  Status status = Status::kPassed;
  std::string detail;  // what was wrong, or why it was skipped
  Duration duration{};
};

// Follows the checks while they run. Called on the loop; must not throw.
class ContractObserver {
 public:
  virtual ~ContractObserver() = default;
  virtual void CheckBegins(const std::string& /*check*/) {}
  virtual void CheckEnded(const CheckResult& /*result*/) {}
  // A machine that a check created, or began to create, could not be removed: its name and how to find it.
  virtual void MachineLeft(const std::string& /*machine*/) {}
};

// What is tested, and with which limits. The checks create and delete machines; they do not change existing
// ones.
struct Subject {
  Loop& loop;
  cloud::Adapter& adapter;
  // The provider named in the machines' metadata. No launcher may use the name: it would delete the machines
  // as leaked.
  ProviderName provider;
  std::shared_ptr<const PoolConfig> pool;
  std::shared_ptr<const LabelConfig> label;
  std::optional<std::string> image_external_id;     // of the label's disk image
  Duration call_timeout = std::chrono::minutes(5);  // of each call of the adapter
  // How often a creation, and a deletion, is cancelled before it has ended, each time at a different await;
  // 0: at every await.
  int most_cancellations = 0;
  // False: the adapter lists nothing by design.
  bool lists_machines = true;
  // Makes the cloud stop answering (true), and answer again (false). Null: not possible.
  std::function<void(bool)> stall = nullptr;
  // Why it cannot do so now; empty: it can. Null: it always can.
  std::function<std::string()> why_no_stall = nullptr;
  Duration stall_timeout = std::chrono::minutes(5);  // of a creation meanwhile
  ContractObserver* observer = nullptr;              // null: no observer; must outlive the run
  // The time to remove the machines of the current check when the run is cancelled.
  Duration removal_timeout = std::chrono::minutes(1);
  // The time to remove what a failed check may have left although no machine of it has an id.
  Duration search_timeout = std::chrono::seconds(30);
};

// Runs every check and returns the results in their order. The other checks run after a check has failed,
// unless the first creation fails. Removes the machines that it created, as far as the adapter allows, also
// when it is cancelled.
Task<std::vector<CheckResult>> RunContract(Subject subject);

// A SOCKS5 proxy on this host through which the HTTP client reaches a cloud (RFC 1928: CONNECT without a
// login), so that any cloud can be made silent. While it stalls it forwards nothing; the connections of that
// time are closed when the stall ends, so that nothing of them reaches the cloud later.
class StallingProxy {
 public:
  // Begins to listen. The loop outlives it; call Stop() first.
  explicit StallingProxy(Loop& loop);
  Task<> Stop() { return tasks_.Stop(); }

  // For http_proxy and https_proxy.
  std::string url() const;
  // How many connections it has made.
  int connections() const { return connections_; }
  void Stall(bool is_stalled);

 private:
  using Socket = boost::asio::ip::tcp::socket;
  struct Connection;

  Task<> Accept();
  Task<> Serve(std::shared_ptr<Connection> connection);
  Task<> Connect(Connection& connection);
  Task<> Pump(std::shared_ptr<Connection> connection, Socket& from, Socket& to);

  Loop& loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  TaskGroup tasks_;
  int connections_ = 0;
  bool is_stalled_ = false;
  int stalls_ = 0;  // that have begun
};

}  // namespace nodepool::driver::testing
