#include "launcher/requests/decline_text.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/text.h"

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

}  // namespace nodepool::launcher
