#include "driver/cloud/leaks/missing_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "driver/cloud/launch/node_record.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

std::size_t ExternalIdHash::operator()(const boost::json::value& id) const {
  if (const boost::json::string* text = id.if_string()) return HashText(*text);
  const boost::json::object* fields = id.if_object();
  if (fields == nullptr) return HashText(serialize(id));
  std::size_t sum = 0;
  for (const auto& [key, value] : *fields) {
    const std::array<std::size_t, 2> parts = {HashText(key), (*this)(value)};
    sum += HashText({reinterpret_cast<const char*>(parts.data()), sizeof(parts)});
  }
  return sum;
}

namespace {

constexpr Duration kPause = std::chrono::seconds(1);  // between the beginnings of two looks

}  // namespace

Task<> SecondLook::Take() {
  std::uint64_t wanted = begun_ + 1;
  while (ended_ < wanted) {
    if (is_looking_) {
      co_await end_.Wait();
    } else {
      co_await LookOnce();
    }
  }
  if (failure_) failure_->Rethrow();
}

// One that is cancelled does not count: the next caller looks for itself.
Task<> SecondLook::LookOnce() {
  is_looking_ = true;
  ScopeExit ended([this] {
    is_looking_ = false;
    end_.NotifyAll();
  });
  co_await loop_.SleepUntil(next_begin_);
  next_begin_ = loop_.SteadyNow() + kPause;
  std::uint64_t number = ++begun_;
  Outcome<> looked = co_await Attempt(look_());
  ended_ = number;
  failure_.reset();
  if (!looked) failure_ = looked.error();
}

namespace {

constexpr Duration kListLimit = std::chrono::seconds(120);
constexpr Duration kSecondCheck = std::chrono::seconds(10);
constexpr std::size_t kReasonLimit = 200;
constexpr const char* kGoneComment = "the cloud has no machine of this node any more";

std::string GoneFrom(const ProviderName& provider) {
  return fmt::format("is gone from provider {}", provider);
}

bool HasMachine(const Node& record) {
  const boost::json::value& id = record.external_id;
  return id.is_object() || (id.is_string() && !id.as_string().empty());
}

}  // namespace

Task<> MissingMachines::Check() {
  // Two checks at the same time would count one answer twice.
  if (is_checking_ || !environment_.records.nodes.synced()) co_return;
  is_checking_ = true;
  ScopeExit done([this] { is_checking_ = false; });
  Machines before = std::exchange(seen_, {});
  Machines candidates = Candidates();
  if (candidates.empty()) co_return;
  const std::map<NodeId, std::string> announced = co_await Announced(candidates);
  const Machines all = candidates;
  seen_ = co_await Missing(std::move(candidates));
  std::erase_if(noted_, [&](const NodeId& id) { return !seen_.contains(id) && !announced.contains(id); });
  for (const auto& [id, reason] : announced) {
    std::string what = fmt::format("is taken away from provider {}: {}", config_.name, reason);
    co_await HandleOrWarn(id, all.at(id), std::move(what));
  }
  const Machines missing = seen_;
  for (const auto& [id, external_id] : missing) {
    auto known = before.find(id);
    if (known == before.end() || known->second != external_id || announced.contains(id)) continue;
    std::string what = GoneFrom(config_.name);
    co_await HandleOrWarn(id, external_id, std::move(what));
  }
}

Task<> MissingMachines::FollowAnnouncements() {
  while (true) {
    co_await announced_.Wait();
    announced_.Reset();
    for (int check = 1; check <= 2; ++check) {
      Outcome<> checked = co_await Attempt(Check());
      if (!checked) {
        logger_.Warning("Provider {} announced that a machine is taken away, but could not be read: {}",
                        config_.name, checked.error().message());
      }
      if (check == 1) co_await environment_.loop.SleepFor(kSecondCheck);
    }
  }
}

MissingMachines::Machines MissingMachines::Candidates() const {
  Machines candidates;
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_.name)) {
    const store::StoredNode* node = environment_.records.nodes.Find(id);
    if (node == nullptr || !HasMachine(node->record)) continue;
    if (node->record.is_free() || node->record.state == NodeState::kInUse)
      candidates.emplace(id, node->record.external_id);
  }
  return candidates;
}

Task<MissingMachines::Machines> MissingMachines::Missing(Machines candidates) {
  std::vector<boost::json::value> ids;
  for (const auto& [id, external_id] : candidates) ids.push_back(external_id);
  SteadyTime deadline = environment_.loop.SteadyNow() + kListLimit;
  std::vector<boost::json::value> missing = co_await WithDeadline(
      environment_.loop, deadline, "looking for missing machines", adapter_.MissingMachines(std::move(ids)));
  ExternalIds gone(missing.begin(), missing.end());
  std::erase_if(candidates, [&gone](const auto& candidate) { return !gone.contains(candidate.second); });
  co_return candidates;
}

Task<std::map<NodeId, std::string>> MissingMachines::Announced(Machines candidates) {
  std::vector<boost::json::value> ids;
  for (const auto& [id, external_id] : candidates) ids.push_back(external_id);
  SteadyTime deadline = environment_.loop.SteadyNow() + kListLimit;
  Task<std::vector<AnnouncedEnd>> reading =
      WithDeadline(environment_.loop, deadline, "reading announcements of the cloud",
                   adapter_.AnnouncedEnds(std::move(ids)));
  Outcome<std::vector<AnnouncedEnd>> read = co_await Attempt(std::move(reading));
  std::map<NodeId, std::string> announced;
  const std::string fault = read ? "" : read.error().message();
  bool is_new = ReplaceMessage(last_fault_, fault);
  if (!read) {
    if (is_new)
      logger_.Warning("Which machines provider {} will take away is not known: {}", config_.name, fault);
    co_return announced;
  }
  std::map<std::string, std::string> reasons;  // by the text of the external id
  for (const AnnouncedEnd& end : *read) reasons[boost::json::serialize(end.external_id)] = end.reason;
  for (const auto& [id, external_id] : candidates) {
    auto reason = reasons.find(boost::json::serialize(external_id));
    if (reason != reasons.end()) announced[id] = Excerpt(reason->second, kReasonLimit);
  }
  co_return announced;
}

Task<> MissingMachines::HandleOrWarn(NodeId id, boost::json::value external_id, std::string what) {
  Outcome<> handled = co_await Attempt(Handle(id, std::move(external_id), std::move(what)));
  if (handled) co_return;
  logger_.About(log::OfNode(id))
      .Warning("The record of a node whose machine is gone could not be changed; it is tried again: {}",
               handled.error().message());
}

Task<> MissingMachines::Handle(NodeId id, boost::json::value external_id, std::string what) {
  const store::StoredNode* node = environment_.records.nodes.Find(id);
  if (node == nullptr) co_return;
  if (node->record.is_free()) {
    co_await MarkForDeletion(std::move(id), std::move(external_id), std::move(what));
  } else if (node->record.state == NodeState::kInUse) {
    co_await NoteInUse(std::move(id), std::move(external_id), std::move(what));
  }
}

Task<> MissingMachines::MarkForDeletion(NodeId id, boost::json::value external_id, std::string what) {
  bool is_marked = co_await DeleteFreeNode(environment_.records.store, id, std::move(external_id),
                                           environment_.loop.Now());
  if (!is_marked) co_return;
  if (environment_.observer != nullptr) environment_.observer->MachineTaken(config_.name, false);
  logger_.About(log::OfNode(id)).Warning("The machine of a ready node {}: the node is deleted", what);
}

Task<> MissingMachines::NoteInUse(NodeId id, boost::json::value external_id, std::string what) {
  if (noted_.contains(id)) co_return;
  const store::StoredNode* node = environment_.records.nodes.Find(id);
  if (node == nullptr) co_return;
  if (environment_.observer != nullptr) environment_.observer->MachineTaken(config_.name, true);
  logger_.About({"", node->record.allocated_to.str(), id.str()})
      .Warning("The machine of a node in use {}", what);
  const std::string comment =
      what == GoneFrom(config_.name) ? kGoneComment : "the machine of this node " + what;
  auto change = [&external_id, &comment](Node& record) {
    bool is_same = record.state == NodeState::kInUse && record.external_id == external_id;
    bool is_other = record.comment && !IsLaunchComment(*record.comment);
    if (!is_same || is_other) return store::Change::kSkip;
    record.comment = record.comment ? fmt::format("{}. {}", comment, *record.comment) : comment;
    return store::Change::kWrite;
  };
  noted_.insert(id);
  co_await environment_.records.store.nodes.UpdateUnlocked(std::move(id), change);
}

}  // namespace nodepool::driver::cloud
