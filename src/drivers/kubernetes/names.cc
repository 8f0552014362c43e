#include "drivers/kubernetes/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "driver/cloud/api/json_calls.h"

namespace nodepool::drivers::kubernetes {

namespace {

constexpr std::size_t kLongest = 63;
constexpr std::size_t kNodeIdWithDash = 11;
constexpr std::size_t kMarkDigits = 8;

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }
bool IsInLabelValue(char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; }

// What remains of the beginning of a name that ends in a node's id and a mark with its dash, or none.
std::string_view Beginning(std::string_view whole, std::size_t mark) {
  return whole.substr(0, kLongest - kNodeIdWithDash - mark);
}

std::string FaultOfPool(const KubernetesConfig& provider, const std::string& pool) {
  bool is_namespace = provider.kind == Kind::kOpenshiftPods;
  std::size_t most = is_namespace ? kLongest : kLongest - kNodeIdWithDash;
  if (!IsDnsLabel(pool, most)) {
    return fmt::format(
        "the pool's name, {}, cannot be {} a namespace's name: lower-case letters, digits and '-', at most "
        "{}",
        Excerpt(pool), is_namespace ? "" : "the beginning of", most);
  }
  bool is_reserved =
      provider.kind == Kind::kOpenshift &&
      (pool.starts_with("openshift-") || pool.starts_with("kubernetes-") || pool.starts_with("kube-") ||
       pool == "openshift" || pool == "kubernetes" || pool == "kube");
  if (is_reserved) return fmt::format("OpenShift reserves projects whose names begin like the pool {}", pool);
  return "";
}

}  // namespace

bool IsLabelValue(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= kLongest && std::ranges::all_of(text, IsInLabelValue) &&
         IsAlphanumeric(text.front()) && IsAlphanumeric(text.back());
}

bool IsDnsLabel(std::string_view text, std::size_t most) {
  auto is_allowed = [](char c) { return IsLower(c) || c == '-'; };
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, is_allowed) &&
         IsLower(text.front()) && IsLower(text.back());
}

std::string ToLabelValue(std::string_view text) {
  if (IsLabelValue(text)) return std::string(text);
  std::string value;
  for (char c : text) {
    if (value.size() == kLongest) break;
    if (value.empty() && !IsAlphanumeric(c)) continue;
    value += IsInLabelValue(c) ? c : '-';
  }
  while (!value.empty() && !IsAlphanumeric(value.back())) value.pop_back();
  return value;
}

std::string NameForNode(std::string_view beginning, std::string_view node_id, std::string_view attempt_mark) {
  return fmt::format("{}-{}-{}", Beginning(beginning, kMarkDigits + 1), node_id,
                     attempt_mark.substr(0, kMarkDigits));
}

std::string NodeIdIn(std::string_view name, std::string_view beginning) {
  for (std::size_t mark : {kMarkDigits + 1, std::size_t{0}}) {
    std::string start = fmt::format("{}-", Beginning(beginning, mark));
    if (name.size() != start.size() + kNodeIdWithDash - 1 + mark || !name.starts_with(start)) continue;
    std::string_view id = name.substr(start.size(), kNodeIdWithDash - 1);
    std::string_view rest = name.substr(start.size() + id.size());
    bool is_marked = rest.empty() || (rest.front() == '-' && std::ranges::all_of(rest.substr(1), IsHexDigit));
    if (is_marked && std::ranges::all_of(id, IsDigit)) return std::string(id);
  }
  return "";
}

std::string FaultOfNames(const KubernetesConfig& provider, const driver::PoolConfig& pool,
                         const KubernetesLabel& label) {
  if (std::string fault = FaultOfPool(provider, pool.name.str()); !fault.empty()) return fault;
  if (!IsLabelValue(provider.name.str()))
    return fmt::format("the provider's name, {}, cannot be a label's value in the cluster",
                       Excerpt(provider.name.str()));
  std::size_t most = provider.kind == Kind::kOpenshiftPods ? kLongest - kNodeIdWithDash : kLongest;
  bool is_allowed = label.has_pod ? IsDnsLabel(label.name.str(), most) : IsLabelValue(label.name.str());
  if (!is_allowed)
    return fmt::format("the name of label {} cannot be a {}: lower-case letters, digits and '-', at most {}",
                       Excerpt(label.name.str()), label.has_pod ? "pod's name" : "label's value", most);
  for (const auto& [key, value] : label.labels) {
    if (!IsLabelValue(value))
      return fmt::format(
          "the cluster does not accept '{}' as the value of label {}: letters, digits, '-', "
          "'_' and '.', at most {}",
          Excerpt(value), Excerpt(key), kLongest);
  }
  return "";
}

namespace {

void AddDynamic(const KubernetesLabel& label, const driver::cloud::CreateParameters& parameters,
                const log::Logger& logger, std::map<std::string, std::string>& labels) {
  for (const auto& [key, text] : label.dynamic_labels) {
    try {
      std::string value = driver::cloud::api::FillTemplate(text, parameters.request_id, parameters.request);
      labels[key] = ToLabelValue(value);
      if (labels[key] != value)
        logger.Info("The value of label {} has become '{}': the cluster takes no other", key, labels[key]);
    } catch (const Error& error) {
      logger.Error("Label {} is left out: {}", key, error.message());
    }
  }
}

}  // namespace

std::map<std::string, std::string> LabelsOf(const KubernetesLabel& label,
                                            const driver::cloud::CreateParameters& parameters,
                                            const log::Logger& logger) {
  std::map<std::string, std::string> labels = label.labels;
  AddDynamic(label, parameters, logger, labels);
  for (const auto& [key, value] : parameters.metadata) labels[key] = value;
  labels[kLabelKey] = label.name.str();
  return labels;
}

}  // namespace nodepool::drivers::kubernetes
