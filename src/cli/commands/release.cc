#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "async/event.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/own_requests.h"
#include "operate/nodes.h"
#include "store/cache/node_cache.h"

namespace nodepool::cli {

namespace {

// How long the command that holds a node may take to give it back.
constexpr Duration kHolderTimeout = std::chrono::seconds(10);

using listing::Listing;
using LockedOrNone = std::optional<store::LockedNode>;

class Releaser {
 public:
  explicit Releaser(Context& context)
      : context_(context), nodes_(context.loop, context.store.tree.client()) {}

  Task<int> Run(std::vector<std::string> names, bool is_confirmed);

 private:
  Task<bool> ReleaseMine(bool is_confirmed);
  Task<bool> ReleaseChosen(std::vector<std::string> names, bool is_confirmed);
  Task<bool> ReleaseAll(std::vector<std::string> names);
  Task<bool> ReleaseRequest(RequestId id);
  Task<bool> ReleaseNode(NodeId id);
  Task<bool> AskHolder(NodeId id);
  Task<> AwaitGivenBack(NodeId id);
  Task<bool> GiveBackUnlocked(NodeId id);
  Task<bool> SetUsed(NodeId id, LockedOrNone& node);
  Task<bool> IsOurs(RequestId id);

  bool Refuse(std::string reason) {
    context_.logger.Error("{}", reason);
    return false;
  }

  Context& context_;
  Event changed_;
  store::NodeCache nodes_;
};

Task<int> Releaser::Run(std::vector<std::string> names, bool is_confirmed) {
  Subscription watch = nodes_.OnChange([this](const NodeId&, const auto*, const auto*) { changed_.Set(); });
  auto stop = [this] { return nodes_.Stop(); };
  bool is_done = co_await WithCleanup(ReleaseChosen(std::move(names), is_confirmed), stop);
  co_return is_done ? 0 : 1;
}

Task<bool> Releaser::ReleaseChosen(std::vector<std::string> names, bool is_confirmed) {
  nodes_.Start();
  co_await nodes_.WaitSynced();
  Task<bool> release = names.empty() ? ReleaseMine(is_confirmed) : ReleaseAll(std::move(names));
  bool is_done = co_await std::move(release);
  co_return is_done;
}

Task<bool> Releaser::ReleaseMine(bool is_confirmed) {
  std::vector<OwnRequest> mine = co_await OwnRequests(context_, nodes_);
  if (mine.empty()) context_.out << fmt::format("Nothing of {} is there to release\n", context_.user);
  Listing rows = ListOwnRequests(mine);
  bool may_release = co_await MayChange(context_, rows, is_confirmed, "release", "requests");
  if (!may_release) co_return false;
  std::vector<std::string> names;
  for (const OwnRequest& own : mine) {
    if (own.is_there) {
      names.push_back(own.id.value);  // which releases its nodes
    } else {
      for (const NodeId& node : own.nodes) names.push_back(node.value);
    }
  }
  bool is_done = co_await ReleaseAll(std::move(names));
  co_return is_done;
}

Task<bool> Releaser::ReleaseAll(std::vector<std::string> names) {
  bool is_done = true;
  for (const std::string& name : names) {
    bool is_released = false;
    if (std::optional<NodeId> node = operate::ParseNodeId(name)) {
      is_released = co_await ReleaseNode(*node);
    } else if (std::optional<RequestId> request = ParseRequestName(name)) {
      is_released = co_await ReleaseRequest(*request);
    } else {
      Refuse(fmt::format("\"{}\" is neither a node (0000000012) nor a request (200-0000000003)", name));
    }
    is_done = is_done && is_released;
  }
  co_return is_done;
}

Task<bool> Releaser::IsOurs(RequestId id) {
  if (id.empty()) co_return false;
  std::optional<store::StoredRequest> request = co_await context_.store.requests.Read(id);
  co_return request&& IsMarked(request->record);
}

Task<bool> Releaser::ReleaseRequest(RequestId id) {
  std::optional<store::StoredRequest> request = co_await context_.store.requests.Read(id);
  store::FewNodes ids = nodes_.OfRequest(id);
  if (!request && ids.empty()) co_return Refuse(fmt::format("Request {} not found", id));
  if (request && !IsMarked(request->record)) {
    co_return Refuse(fmt::format("Request {} belongs to another client ({}), not to nodepool request", id,
                                 request->record.requestor.value_or("unnamed")));
  }
  bool is_done = true;
  // Nodes of a request that is not fulfilled still belong to the launcher, which frees them when the request
  // is gone.
  bool has_nodes = !request || request->record.state == RequestState::kFulfilled;
  if (has_nodes) {
    for (const NodeId& node : ids) {
      bool is_released = co_await ReleaseNode(node);
      is_done = is_done && is_released;
    }
  }
  if (is_done && request) {
    co_await context_.store.requests.Delete(id);
    context_.out << "Request " << id.value << " withdrawn" << std::endl;
  }
  co_return is_done;
}

Task<bool> Releaser::ReleaseNode(NodeId id) {
  const store::StoredNode* node = nodes_.Find(id);
  if (!node) co_return Refuse(fmt::format("Node {} not found", id));
  bool is_marked = IsMarked(node->record);
  bool is_locked = node->is_locked();
  if (is_locked && !is_marked) {
    co_return Refuse(fmt::format("Node {} is locked by another client", id));
  }
  if (is_locked) {
    bool is_given_back = co_await AskHolder(id);
    co_return is_given_back;
  }
  RequestId owner = node->record.allocated_to;
  bool is_ours = is_marked;
  if (!is_ours) is_ours = co_await IsOurs(owner);
  if (!is_ours) co_return Refuse(fmt::format("Node {} was not given to nodepool request", id));
  bool is_given_back = co_await GiveBackUnlocked(id);
  co_return is_given_back;
}

Task<bool> Releaser::AskHolder(NodeId id) {
  auto ask = [](Node& node) {
    if (!IsMarked(node)) return store::Change::kSkip;
    AskForRelease(node);
    return store::Change::kWrite;
  };
  co_await context_.store.nodes.UpdateUnlocked(id, ask);
  SteadyTime deadline = context_.loop.SteadyNow() + kHolderTimeout;
  bool is_given_back = co_await EndsBy(context_.loop, deadline, "release", AwaitGivenBack(id));
  if (!is_given_back)
    co_return Refuse(
        fmt::format("The command that holds node {} does not answer; the request to release it stays", id));
  context_.out << "Node " << id.value << " released" << std::endl;
  co_return true;
}

Task<> Releaser::AwaitGivenBack(NodeId id) {
  while (true) {
    changed_.Reset();
    const store::StoredNode* node = nodes_.Find(id);
    if (!node || node->record.state != NodeState::kInUse) co_return;
    co_await changed_.Wait();
  }
}

// A node of a request without a waiting command, or whose command died.
Task<bool> Releaser::GiveBackUnlocked(NodeId id) {
  auto give_back = [this, id](LockedOrNone& node) { return SetUsed(id, node); };
  bool is_given_back = co_await Bracket(context_.store.nodes.TryLock(id), give_back, &UnlockNode);
  co_return is_given_back;
}

Task<bool> Releaser::SetUsed(NodeId id, LockedOrNone& node) {
  if (!node) co_return Refuse(fmt::format("Node {} was locked by another client meanwhile", id));
  WallTime now = context_.loop.Now();
  auto change = [now](Node& record) {
    if (record.state != NodeState::kReady && record.state != NodeState::kInUse) return store::Change::kSkip;
    record.SetState(NodeState::kUsed, now);
    return store::Change::kWrite;
  };
  co_await node->Update(change);
  context_.out << "Node " << id.value << " released" << std::endl;
  co_return true;
}

// `nodepool release [REQUEST-or-NODE...]`: gives back what `nodepool request` got, in this terminal or
// another; without names, everything that requests of `context.user` got, after a confirmation if that is
// more than one request (MayChange() in cli/command.h). A request that is still waiting is withdrawn.
// Nodes become `used`, and are then deleted. Requests and nodes of other clients are refused. Status 1 if
// anything was not released.
Task<int> Release(Context& context, std::vector<std::string> names, bool is_confirmed) {
  auto releaser = std::make_unique<Releaser>(context);
  int status = co_await releaser->Run(std::move(names), is_confirmed);
  co_return status;
}

}  // namespace

void RegisterRelease(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::vector<std::string> names;
    bool is_confirmed = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("release", "give back what `nodepool request` got");
  command
      ->add_option("REQUEST-or-NODE", values->names,
                   "ids of requests or nodes; without any, all that you have requested here")
      ->type_name("");
  command->add_flag("--yes", values->is_confirmed, "do not ask when that is more than one request");
  OnCommand(*command, invocation,
            [values](Context& context) { return Release(context, values->names, values->is_confirmed); });
}

}  // namespace nodepool::cli
