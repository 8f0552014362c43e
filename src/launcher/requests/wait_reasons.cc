#include "launcher/requests/wait_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"
#include "sched/requests/reason.h"

namespace nodepool::launcher {

namespace {

using Sentences = std::vector<std::string>;

std::string MissingLabel(const PoolFacts& pool, const LabelName& label) {
  std::vector<std::string> names;
  for (const auto& [name, config] : pool.config.labels) names.push_back(name.value);
  std::optional<std::string> nearest = NearestSpelling(label.value, names);
  return fmt::format("it has no label {}{}", Excerpt(label.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

Sentences UnavailableLabels(const PoolFacts& pool, const std::set<LabelName>& labels) {
  Sentences sentences;
  for (const LabelName& label : labels) {
    auto known = pool.view.labels.find(label);
    if (known == pool.view.labels.end()) {
      sentences.push_back(MissingLabel(pool, label));
    } else if (known->second.is_broken) {
      auto fault = pool.faults.find(label);
      sentences.push_back(fmt::format("label {} cannot be launched{}", label,
                                      fault == pool.faults.end() ? "" : ": " + fault->second));
    }
  }
  return sentences;
}

Sentences MissingImages(const PoolFacts& pool, const std::set<LabelName>& labels) {
  Sentences sentences;
  for (const LabelName& label : labels) {
    auto view = pool.view.labels.find(label);
    auto config = pool.config.labels.find(label);
    if (view == pool.view.labels.end() || config == pool.config.labels.end() || view->second.is_image_ready)
      continue;
    const driver::LabelConfig& settings = *config->second;
    if (settings.diskimage) {
      sentences.push_back(
          fmt::format("image {} of label {} has no upload in this provider", *settings.diskimage, label));
    } else {
      sentences.push_back(
          fmt::format("image {} of label {} is not available", settings.cloud_image.value_or("?"), label));
    }
  }
  return sentences;
}

Resources NeedOf(const sched::PoolView& pool, const NodeRequest& request) {
  Resources need;
  for (const LabelName& label : request.node_types) {
    if (auto found = pool.labels.find(label); found != pool.labels.end()) Add(need, found->second.need);
  }
  return need;
}

std::string CloudQuota(const sched::Budget& provider, const std::string& resource) {
  double left = provider.limit.at(resource);
  auto others = provider.others.find(resource);
  if (others == provider.others.end() || others->second == 0)
    return fmt::format("the quota in the cloud is {}", left);
  return fmt::format("the quota in the cloud is {}, of which others use {}", ExactSum(left, others->second),
                     others->second);
}

Sentences ExceededLimits(const sched::PoolView& pool, const NodeRequest& request) {
  Sentences sentences;
  Resources need = NeedOf(pool, request);
  for (const auto& [resource, excess] : Shortage(pool.pool.limit, {}, need)) {
    sentences.push_back(fmt::format("{} {} needed, the pool's {} is {}", need.at(resource), resource,
                                    SettingOf(resource), pool.pool.limit.at(resource)));
  }
  for (const auto& [resource, excess] : Shortage(sched::DecliningLimit(pool), {}, need)) {
    sentences.push_back(
        fmt::format("{} {} needed, {}", need.at(resource), resource, CloudQuota(pool.provider, resource)));
  }
  return sentences;
}

Sentences SentencesOf(const PoolFacts& pool, const NodeRequest& request, sched::Reason reason) {
  const std::set<LabelName> labels(request.node_types.begin(), request.node_types.end());
  switch (reason) {
    case sched::Reason::kPoolDisabled:
      return {fmt::format("its max-servers is {}, which disables it", pool.config.max_servers)};
    case sched::Reason::kProviderPaused:
      return {"the provider is paused by " + pool.view.paused_by.value_or("an operator")};
    case sched::Reason::kLabelNotAvailable:
      return UnavailableLabels(pool, labels);
    case sched::Reason::kImageNotAvailable:
      return MissingImages(pool, labels);
    case sched::Reason::kExceedsQuota:
      return ExceededLimits(pool.view, request);
    default:
      return {};
  }
}

}  // namespace

std::string SettingOf(const std::string& resource) {
  if (resource == resource::kInstances) return "max-servers";
  for (const char* own : {resource::kCores, resource::kRam, resource::kVolumes, resource::kVolumeGb}) {
    if (resource == own) return "max-" + resource;
  }
  return "max-resources for " + resource;
}

std::string DeclineText(const PoolFacts& pool, const NodeRequest& request, const sched::Decision& decision) {
  Sentences sentences = SentencesOf(pool, request, decision.reason);
  // What the decision was based on has changed since.
  if (sentences.empty()) return std::string(ToString(decision.reason));
  return Join(sentences, "; ");
}

namespace {

using sched::Reason;
using sched::Shortfall;

// ", 3 are needed": where what is free would be enough for fewer.
std::string AlsoNeeded(const Shortfall& shortfall) {
  if (shortfall.used >= shortfall.limit) return "";
  return shortfall.is_reserved() ? ", the rest is kept for an earlier request"
                                 : fmt::format(", {} more are needed", shortfall.needed);
}

std::string TenantText(const std::string& tenant, const Shortfall& shortfall) {
  std::string setting = SettingOf(shortfall.resource);
  if (shortfall.needed > shortfall.limit) {
    return fmt::format("tenant {} has {} {}, and the request needs {}; raise it in tenant-resource-limits",
                       tenant, setting, shortfall.limit, shortfall.needed);
  }
  return fmt::format("tenant {} has {} of {} {}{}; raise it in tenant-resource-limits, or wait for its nodes",
                     tenant, shortfall.used, setting, shortfall.limit, AlsoNeeded(shortfall));
}

std::string LimitText(const Shortfall& shortfall) {
  if (shortfall.of == Shortfall::Limit::kPool) {
    std::string setting = SettingOf(shortfall.resource);
    return fmt::format("uses {} of {} {}{}; raise its {}, or wait for nodes", shortfall.used, shortfall.limit,
                       shortfall.resource, AlsoNeeded(shortfall), setting);
  }
  std::string others = shortfall.others > 0 ? fmt::format(", others use {}", shortfall.others) : "";
  return fmt::format("uses {} of {} {} of the cloud's quota{}{}; raise the quota, or wait for nodes",
                     shortfall.used, ExactSum(shortfall.limit, shortfall.others), shortfall.resource, others,
                     AlsoNeeded(shortfall));
}

std::string TextOfDecision(const PoolKey& pool, const sched::Decision& decision) {
  const std::string& detail = decision.detail;
  switch (decision.reason) {
    case Reason::kNone:
      return "";
    case Reason::kPoolDisabled:
      return "is disabled: its max-servers is 0";
    case Reason::kProviderPaused:
      return fmt::format("is paused by {}; `nodepool provider-unpause {}` ends it", detail, pool.provider);
    case Reason::kLabelNotAvailable:
      return fmt::format("cannot launch label {}; `nodepool label-list` says why", detail);
    case Reason::kImageNotAvailable:
      return fmt::format("has no image for label {}; `nodepool image-status` says why", detail);
    case Reason::kExceedsQuota:
      return fmt::format("can never have as many {} as the request needs", detail);
    case Reason::kNotRequested:
      return "works on it, or another pool does";
    case Reason::kDeclinedBefore:
      return "declined it before";
    case Reason::kOtherProviderWanted:
      return fmt::format("left to provider {}, which it asks for", detail);
    case Reason::kPreferredPool:
      return fmt::format("left to {}, which has a smaller priority number", detail);
    case Reason::kOthersCanServe:
      return fmt::format("left to {}, which has its labels", detail);
    case Reason::kBreakerOpen:
      if (detail.empty()) return "tries no launch now, though its launches fail";
      return fmt::format("leaves it to {}, since its launches fail; `nodepool status` says why", detail);
    case Reason::kNoFreeNode:
      return fmt::format("has no free node of label {}", detail);
    case Reason::kTenantLimit:
      return decision.shortfall ? TenantText(detail, *decision.shortfall)
                                : fmt::format("tenant {} is at its limit", detail);
    case Reason::kCapacityReserved:
      if (decision.shortfall) return LimitText(*decision.shortfall);
      return fmt::format("keeps its capacity for an earlier request{}{}",
                         detail.empty() ? "" : ", which waits for ", detail);
    case Reason::kLaunchesInProgress:
      return fmt::format("has {} launches of max-concurrency in progress; raise it to launch more at a time",
                         detail);
    case Reason::kProviderFault:
      return fmt::format("cannot say now whether it has label {}; it is asked again", detail);
    case Reason::kProviderUnusable:
      return fmt::format("cannot be used: {}", detail);
  }
  return "";
}

std::string RefusedText(const sched::FillPlan& plan) {
  std::vector<std::string> labels, resources;
  for (const LabelName& label : plan.refused.labels) labels.push_back(label.value);
  for (const auto& [resource, amount] : plan.provider_shortage) resources.push_back(resource);
  std::string what = !resources.empty() ? "more " + Join(resources, ", ")
                     : !labels.empty()  ? "label " + Join(labels, ", ")
                                        : "more nodes";
  return fmt::format("waits until the cloud has capacity: it refused {}; free some, or raise the quota",
                     what);
}

}  // namespace

WaitReason ReasonOf(const PoolKey& pool, const sched::Decision& decision) {
  return {pool, std::string(CodeOf(decision.reason)), TextOfDecision(pool, decision), {}, {}, {}};
}

WaitReason ReasonOf(const sched::PoolView& pool, const sched::FillPlan& plan) {
  WaitReason reason{
      pool.key, std::string(sched::kCapacityCode), "", plan.wait, plan.pool_shortage, plan.provider_shortage};
  std::optional<Shortfall> shortfall = plan.is_refused ? std::nullopt : ShortfallOf(pool, plan);
  if (shortfall) {
    reason.text = LimitText(*shortfall);
  } else if (plan.misses_capacity()) {
    reason.text = RefusedText(plan);
  } else {
    reason.code = CodeOf(Reason::kLaunchesInProgress);
    reason.text = TextOfDecision(
        pool.key, {.reason = Reason::kLaunchesInProgress,
                   .detail = fmt::format("{} of {}", pool.launches_in_progress, pool.max_concurrency)});
  }
  return reason;
}

WaitReason UnusableProvider(const PoolKey& pool, const std::string& fault) {
  return ReasonOf(pool,
                  {.reason = Reason::kProviderUnusable, .detail = fault.empty() ? "it is starting" : fault});
}

sched::RequestReason Sentence(const WaitReason& reason) {
  return {reason.code, reason.pool, sched::SentenceOf(reason.code, reason.pool, reason.text), ""};
}

namespace {

constexpr Duration kQuiet = std::chrono::seconds(10);
// A shape that waits now and then is logged at most once in this time, if nothing changed.
constexpr Duration kRemembered = std::chrono::minutes(5);
constexpr std::size_t kMaxShapes = 1000;

std::string LineOf(const sched::Shape& shape, std::size_t count, const sched::Answers& answers) {
  std::vector<sched::RequestReason> reasons;
  for (const auto& [pool, decision] : answers) reasons.push_back(Sentence(ReasonOf(pool, decision)));
  const sched::RequestReason* decides = sched::DecidingReason(reasons);
  std::string tenant = shape.tenant_name ? " of tenant " + *shape.tenant_name : "";
  std::string others = count > 1 ? fmt::format(" (and {} more like it)", count - 1) : "";
  return fmt::format("The request for {}{}{} waits: {}", fmt::join(shape.node_types, ","), tenant, others,
                     decides == nullptr ? "no pool of this launcher runs" : decides->text);
}

}  // namespace

// What the line depends on, without its figures.
WaitLog::Decides WaitLog::DecidingOf(const sched::Answers& answers) {
  auto rank = [](const auto& answer) { return sched::RankOf(sched::CodeOf(answer.second.reason)); };
  auto first = std::ranges::min_element(answers, {}, rank);
  if (first == answers.end()) return std::nullopt;
  return std::pair(first->first, first->second.reason);
}

void WaitLog::Report(const std::set<sched::Shape>& changes, const AnswersOf& answers_of,
                     const sched::Queues& queues, SteadyTime now) {
  for (const sched::Shape& shape : changes) Follow(shape, answers_of(shape));
  RemoveOld(now);
  std::erase_if(changed_, [&](const sched::Shape& shape) {
    Logged& logged = logged_.at(shape);
    if (now - logged.when < kQuiet) return false;
    logged.decides = logged.now;
    logged.when = now;
    Log(shape, *answers_of(shape), queues);
    return true;
  });
  while (!unnamed_.empty() && logged_.size() < kMaxShapes) {
    sched::Shape shape = std::move(unnamed_.extract(unnamed_.begin()).value());
    const sched::Answers& answers = *answers_of(shape);
    Decides decides = DecidingOf(answers);
    logged_.emplace(shape, Logged{decides, decides, now});
    Log(shape, answers, queues);
  }
  CountUnnamed(now);
}

void WaitLog::Follow(const sched::Shape& shape, const sched::Answers* answers) {
  auto logged = logged_.find(shape);
  if (logged == logged_.end()) {
    if (answers != nullptr) {
      unnamed_.insert(shape);
    } else {
      unnamed_.erase(shape);
    }
    return;
  }
  if (answers == nullptr) {
    changed_.erase(shape);
    idle_.emplace(logged->second.when, shape);
    return;
  }
  idle_.erase({logged->second.when, shape});
  logged->second.now = DecidingOf(*answers);
  if (logged->second.now != logged->second.decides) {
    changed_.insert(shape);
  } else {
    changed_.erase(shape);
  }
}

void WaitLog::RemoveOld(SteadyTime now) {
  while (!idle_.empty() && now - idle_.begin()->first >= kRemembered) {
    logged_.erase(idle_.begin()->second);
    idle_.erase(idle_.begin());
  }
}

void WaitLog::Log(const sched::Shape& shape, const sched::Answers& answers, const sched::Queues& queues) {
  auto line = queues.shapes().find(shape);
  if (line == queues.shapes().end()) return;
  const sched::Queue& queue = line->second.requests;
  const sched::Waiting& first = queue.begin()->second;
  logger_.About({first.request->event_id.value_or(""), first.id.value, ""})
      .Info("{}", LineOf(shape, queue.size(), answers));
}

void WaitLog::CountUnnamed(SteadyTime now) {
  if (unnamed_.empty() || (counted_ && now - *counted_ < kRemembered)) return;
  counted_ = now;
  logger_.Warning(
      "Requests of {} more kinds wait, too many to log why each does; `nodepool request-list --detail` shows "
      "it",
      unnamed_.size());
}

}  // namespace nodepool::launcher
