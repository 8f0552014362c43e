#include "cli/remote/exec.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "async/task.h"
#include "async/task_group.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/node_claim.h"
#include "cli/remote/remote_command.h"
#include "driver/provider_environment.h"
#include "net/ssh/ssh_files.h"

namespace nodepool::cli {

namespace {

namespace fs = std::filesystem;

// What ssh, scp and rsync return when the connection failed.
constexpr int kConnectionFailed = 255;

std::vector<net::SshNode> SshNodesOf(const NodeClaim& claim, const ExecOptions& options) {
  const net::LoginOptions& login = options.login;
  bool logs_in = !options.runs_here || options.sync || !options.fetch.empty();
  std::vector<net::SshNode> nodes;
  for (const auto& [id, record] : claim.nodes()) {
    Expected<net::SshNode> node = net::SshNodeOf(id, record);
    if (!node) throw node.error();
    if (logs_in && driver::IsSimulated(node->address)) {
      throw Error(Verdict::kInvalid,
                  fmt::format("Node {} cannot be logged in to: its machine is simulated, it exists only in "
                              "the launcher's memory (driver: fake)",
                              node->id));
    }
    if (node->host_keys.empty() && !login.accepts_any_key) {
      throw Error(
          Verdict::kInvalid,
          fmt::format(
              "The record of node {} has no host keys to compare with (host-key-checking of its pool is "
              "off?); --any-host-key logs in all the same",
              node->id));
    }
    nodes.push_back(std::move(*node));
  }
  return nodes;
}

// The name of the folder's copy in the home of the node's user.
std::string NameOfCopy(const std::string& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  return name.empty() ? "root" : name;
}

// The use of the claimed nodes, from the first login to the last copy.
class Execution {
 public:
  Execution(Console& console, const ExecOptions& options, std::vector<net::SshNode> nodes)
      : console_(console), options_(options), nodes_(std::move(nodes)), files_(nodes_, options.login) {}

  // `status` becomes that of the command once it has ended.
  Task<> Run(std::optional<int>& status) {
    if (options_.inventory) WriteInventory(*options_.inventory);
    if (options_.sync) co_await ForEachNode(&Execution::Sync);
    statuses_.assign(nodes_.size(), kExecFailed);
    ScopeExit note([&] { status = FirstFailure(); });
    if (options_.runs_here) {
      co_await RunHere(console_, LocalCommand(), statuses_.front());
      std::ranges::fill(statuses_, statuses_.front());
    } else {
      co_await ForEachNode(&Execution::RunCommand);
    }
    if (!options_.fetch.empty()) co_await ForEachNode(&Execution::Fetch);
  }

 private:
  using Step = Task<> (Execution::*)(std::size_t);

  // Does the step on all nodes at once; throws the first failure.
  Task<> ForEachNode(Step step) {
    std::vector<std::optional<Outcome<>>> outcomes(nodes_.size());
    TaskGroup tasks(console_.loop, console_.logger);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      tasks.Spawn("work on node " + nodes_[i].id, Keep((this->*step)(i), outcomes[i]));
    }
    auto stop = [&tasks] { return tasks.Stop(); };
    co_await WithCleanup(tasks.Join(), stop);
    for (const std::optional<Outcome<>>& outcome : outcomes) {
      if (outcome && !*outcome) outcome->error().Rethrow();
    }
  }

  static Task<> Keep(Task<> step, std::optional<Outcome<>>& outcome) {
    Outcome<> ended = co_await Attempt(std::move(step));
    outcome.emplace(std::move(ended));
  }

  Task<> Sync(std::size_t i) {
    std::string source = fs::absolute(*options_.sync).lexically_normal().string();
    std::vector<std::string> words{"rsync",
                                   "--archive",
                                   "--delete",
                                   "--rsh=ssh -F " + files_.config(),
                                   "--",
                                   source + "/",
                                   nodes_[i].id + ":" + NameOfCopy(*options_.sync) + "/"};
    co_await Copy(std::move(words),
                  fmt::format("{} could not be copied to node {}; rsync is needed here and there",
                              *options_.sync, nodes_[i].id));
  }

  Task<> Fetch(std::size_t i) {
    for (const std::string& path : options_.fetch) {
      std::string target = nodes_.size() == 1 ? "." : nodes_[i].id;
      fs::create_directories(target);
      bool is_in_copy = options_.sync && !path.starts_with('/');
      std::string source = is_in_copy ? NameOfCopy(*options_.sync) + "/" + path : path;
      std::vector<std::string> words = files_.Words("scp");
      words.insert(words.end(), {"-r", "-q", "--", nodes_[i].id + ":" + source, target});
      co_await Copy(std::move(words),
                    fmt::format("{} could not be fetched from node {}", path, nodes_[i].id));
    }
  }

  Task<> Copy(std::vector<std::string> words, std::string failure) {
    int status = 0;
    process::ForegroundCommand command{.argv = std::move(words)};
    co_await RunHere(console_, std::move(command), status);
    if (status != 0) throw Error(Verdict::kFail, std::move(failure));
  }

  Task<> RunCommand(std::size_t i) {
    RemoteCommand command;
    if (!options_.command.empty()) command.line = ShellLine(options_.command);
    if (options_.sync) command.folder = NameOfCopy(*options_.sync);
    const net::SshNode& node = nodes_[i];
    if (nodes_.size() == 1) {
      command.has_terminal = console_.can_ask && console_.is_terminal;
      co_await RunOnNode(console_, files_, node.id, std::move(command), statuses_[i]);
    } else {
      LabelledOutput output(console_.loop, fmt::format("[{} {}] ", node.label, node.id), console_.out);
      command.output = output.writing_end();
      TaskGroup reading(console_.loop, console_.logger);
      reading.Spawn("output of node " + node.id, output.Follow());
      auto stop = [&reading] { return reading.Stop(); };
      co_await WithCleanup(RunLabelled(i, std::move(command), output, reading), stop);
    }
    if (statuses_[i] == kConnectionFailed) {
      console_.logger.Warning(
          "The connection to node {} ended or could not be made, or the command returned 255", node.id);
    }
  }

  Task<> RunLabelled(std::size_t i, RemoteCommand command, LabelledOutput& output, TaskGroup& reading) {
    co_await RunOnNode(console_, files_, nodes_[i].id, std::move(command), statuses_[i]);
    output.CloseWritingEnd();
    co_await reading.Join();
  }

  process::ForegroundCommand LocalCommand() const {
    process::ForegroundCommand command;
    command.argv = options_.command;
    if (command.argv.size() == 1) command.argv = {"/bin/sh", "-c", command.argv.front()};
    std::string ids;
    for (const net::SshNode& node : nodes_) ids += (ids.empty() ? "" : " ") + node.id;
    command.environment["NODEPOOL_NODES"] = ids;
    command.environment["NODEPOOL_SSH_CONFIG"] = files_.config();
    if (options_.inventory)
      command.environment["NODEPOOL_INVENTORY"] = fs::absolute(*options_.inventory).string();
    return command;
  }

  void WriteInventory(const std::string& path) const {
    std::ofstream file(path);
    file << InventoryText(nodes_, files_.config());
    file.close();
    if (!file) throw Error(Verdict::kFail, fmt::format("The inventory {} cannot be written", path));
  }

  int FirstFailure() const {
    auto found = std::ranges::find_if(statuses_, [](int status) { return status != 0; });
    return found == statuses_.end() ? 0 : *found;
  }

  Console& console_;
  const ExecOptions& options_;
  const std::vector<net::SshNode> nodes_;
  const net::SshFiles files_;
  std::vector<int> statuses_;  // of the nodes
};

Task<> RunAndSay(Execution& execution, std::optional<int>& status, std::optional<Outcome<>>& outcome,
                 Event& ended) {
  ScopeExit say([&] { ended.Set(); });
  Outcome<> run = co_await Attempt(execution.Run(status));
  outcome.emplace(std::move(run));
}

Task<> WatchClaim(Console& console, NodeClaim& claim, Event& ended) {
  Outcome<> kept = co_await Attempt(claim.Keep(SteadyTime::max()));
  if (!kept) console.logger.Error("{}", kept.error().message());
  ended.Set();
}

// Runs the command for as long as the nodes are ours.
Task<> UseNodes(Console& console, const ExecOptions& options, NodeClaim& claim, std::optional<int>& status) {
  co_await ObtainShowingWhy(console, claim);
  Execution execution(console, options, SshNodesOf(claim, options));
  Event ended;
  std::optional<Outcome<>> outcome;
  TaskGroup tasks(console.loop, console.logger);
  tasks.Spawn("run the command", RunAndSay(execution, status, outcome, ended));
  tasks.Spawn("watch the nodes", WatchClaim(console, claim, ended));
  auto stop = [&tasks] { return tasks.Stop(); };
  co_await WithCleanup(ended.Wait(), stop);
  if (!outcome) throw Error(Verdict::kFail, "The nodes were taken away while the command ran; it was ended");
  if (!*outcome) outcome->error().Rethrow();
}

Task<> UseAndGiveBack(Console& console, const ExecOptions& options, NodeClaim& claim,
                      std::optional<int>& status) {
  auto end = [&claim] { return claim.End(); };
  Task<> use = UntilInterrupted(UseNodes(console, options, claim, status));
  co_await WithCleanup(std::move(use), end);
}

}  // namespace

Task<int> ExecOn(Console& console, NodeClaim& claim, const ExecOptions& options) {
  if (std::string fault = FaultOfThisComputer(options); !fault.empty()) {
    console.logger.Error("{}", fault);
    co_return kExecFailed;
  }
  std::optional<int> status;
  Outcome<> used = co_await Attempt(UseAndGiveBack(console, options, claim, status));
  if (!used) {
    console.logger.Error("{}", used.error().message());
    co_return kExecFailed;
  }
  if (status) co_return *status;
  co_return 128 + console.interrupted_by;
}

Task<int> Exec(Context& context, ExecOptions options) {
  std::string fault = co_await FaultOfWish(context, options.wish);
  if (!fault.empty()) {
    context.logger.Error("{}", fault);
    co_return kExecFailed;
  }
  SessionClaim claim(context, options.wish);
  int status = co_await ExecOn(context, claim, options);
  co_return status;
}

namespace {

namespace json = boost::json;

// What Ansible takes as a group's name.
std::string GroupName(std::string label) {
  for (char& letter : label) {
    bool is_allowed = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9');
    if (!is_allowed) letter = '_';
  }
  bool has_digit_first = !label.empty() && label.front() >= '0' && label.front() <= '9';
  return has_digit_first ? "_" + label : label;
}

}  // namespace

std::string InventoryText(const std::vector<net::SshNode>& nodes, const std::string& ssh_config) {
  json::object hosts, groups;
  for (const net::SshNode& node : nodes) {
    hosts[node.id] = json::object({{"ansible_connection", "ssh"},
                                   {"ansible_ssh_common_args", "-F " + ssh_config},
                                   {"nodepool_label", node.label},
                                   {"nodepool_address", node.address},
                                   {"nodepool_port", node.port}});
    json::value& group = groups[GroupName(node.label)];
    if (!group.is_object()) group = json::object({{"hosts", json::object()}});
    group.at("hosts").as_object()[node.id] = json::object();
  }
  json::object all{{"hosts", std::move(hosts)}, {"children", std::move(groups)}};
  return json::serialize(json::object({{"all", std::move(all)}})) + "\n";
}

namespace {

// Where execvp() searches without PATH.
constexpr const char* kUsualPath = "/bin:/usr/bin";

bool IsProgram(const std::string& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

bool IsThere(const std::string& program) {
  if (program.find('/') != std::string::npos) return IsProgram(program);
  const char* path = std::getenv("PATH");
  return std::ranges::any_of(Split(path == nullptr ? kUsualPath : path, ':'), [&](const std::string& place) {
    return IsProgram((place.empty() ? "." : place) + "/" + program);
  });
}

struct Need {
  std::string program;
  std::string user;  // what runs it
};

// In the order in which they are run.
std::vector<Need> NeedsOf(const ExecOptions& options) {
  std::vector<Need> needs;
  if (options.sync) needs.push_back({"rsync", "--sync needs it"});
  if (options.sync || !options.runs_here) needs.push_back({"ssh", "it is needed to log in"});
  bool is_program = options.runs_here && options.command.size() > 1;  // one word is a line for the shell
  if (is_program) needs.push_back({options.command.front(), "it is the command"});
  if (!options.fetch.empty()) needs.push_back({"scp", "--fetch needs it"});
  return needs;
}

}  // namespace

std::string FaultOfThisComputer(const ExecOptions& options) {
  for (const Need& need : NeedsOf(options)) {
    if (!IsThere(need.program))
      return fmt::format("{} is not installed here; {}", Excerpt(need.program), need.user);
  }
  if (!options.inventory) return "";
  fs::path folder = fs::absolute(*options.inventory).parent_path();
  return ::access(folder.c_str(), W_OK) == 0
             ? ""
             : fmt::format("{} cannot be written; --inventory needs it", Excerpt(folder.string()));
}

}  // namespace nodepool::cli
