#include "driver/cloud/launch/machine_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "async/attempt.h"
#include "base/text.h"
#include "driver/machine_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kScanLimit = std::chrono::seconds(15);
constexpr Duration kCommandLimit = std::chrono::seconds(60);
constexpr Duration kCommandGrace = std::chrono::seconds(5);
constexpr std::string_view kTcp = "tcp", kSsh = "ssh";

bool HaveOneInCommon(const std::vector<std::string>& keys, const std::vector<std::string>& shown) {
  return std::ranges::any_of(
      keys, [&shown](const std::string& key) { return std::ranges::find(shown, key) != shown.end(); });
}

process::Command CheckCommand(const NodeId& id, const Node& record, const std::string& line) {
  process::Command command;
  command.argv = process::SplitWords(line);
  command.environment = MachineEnvironment(process::OwnEnvironment(), id, record);
  command.timeout = kCommandLimit;
  command.grace = kCommandGrace;
  return command;
}

}  // namespace

Task<std::optional<CheckFailure>> MachineCheck::Run(NodeId id, Node record, std::string how) {
  if (!how.empty() && how != kTcp && how != kSsh)
    return RunCommand(std::move(id), std::move(record), std::move(how));
  bool wants_keys = how == kSsh || (how.empty() && !record.host_keys.empty());
  return Scan(std::move(record), wants_keys);
}

Task<std::optional<CheckFailure>> MachineCheck::Scan(Node record, bool wants_keys) {
  if (!scan_) co_return std::nullopt;
  const std::string host = *record.interface_ip;
  const int port = ConnectionPort(record);
  Gate::Pass place = co_await scans_.Enter();
  SteadyTime deadline = environment_.loop.SteadyNow() + kScanLimit;
  Outcome<std::vector<std::string>> shown = co_await Attempt(scan_(host, port, wants_keys, deadline));
  if (!shown) {
    co_return CheckFailure{
        "silent", fmt::format("does not answer at {} port {}: {}", host, port, shown.error().message())};
  }
  if (wants_keys && !record.host_keys.empty() && !HaveOneInCommon(record.host_keys, *shown)) {
    co_return CheckFailure{"host-keys",
                           fmt::format("shows other host keys than its own at {} port {}", host, port)};
  }
  co_return std::nullopt;
}

Task<std::optional<CheckFailure>> MachineCheck::RunCommand(NodeId id, Node record, std::string line) {
  if (environment_.runner == nullptr) co_return std::nullopt;
  Gate::Pass place = co_await commands_.Enter();
  Outcome<process::Exit> ended = co_await Attempt(environment_.runner->Run(CheckCommand(id, record, line)));
  if (!ended) {
    // That says nothing of the machine.
    if (!std::exchange(is_command_at_fault_, true))
      logger_.Warning("Ready nodes are not checked: {}; correct recheck", ended.error().message());
    co_return std::nullopt;
  }
  is_command_at_fault_ = false;
  if (ended->is_good()) co_return std::nullopt;
  co_return CheckFailure{
      "command", fmt::format("does not stand its check, which ended with {}{}{}", ended->code,
                             ended->is_timed_out ? ", out of time" : "", Excerpt(LastSaid(ended->output)))};
}

}  // namespace nodepool::driver::cloud
