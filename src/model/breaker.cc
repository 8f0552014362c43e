#include "model/breaker.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "model/record_fields.h"

namespace nodepool {
namespace {

constexpr std::size_t kShownError = 300;

constexpr FailureKind kKinds[] = {FailureKind::kAuthentication, FailureKind::kQuota,   FailureKind::kCapacity,
                                  FailureKind::kBoot,           FailureKind::kKeyScan, FailureKind::kImage,
                                  FailureKind::kOther};

}  // namespace

std::string_view ToString(FailureKind kind) {
  switch (kind) {
    case FailureKind::kAuthentication:
      return "authentication";
    case FailureKind::kQuota:
      return "quota";
    case FailureKind::kCapacity:
      return "capacity";
    case FailureKind::kBoot:
      return "boot";
    case FailureKind::kKeyScan:
      return "key-scan";
    case FailureKind::kImage:
      return "image";
    case FailureKind::kOther:
      break;
  }
  return "other";
}

std::optional<FailureKind> ParseFailureKind(std::string_view text) {
  auto kind = std::ranges::find(kKinds, text, [](FailureKind known) { return ToString(known); });
  if (kind == std::end(kKinds)) return std::nullopt;
  return *kind;
}

std::string ToString(const BreakerKey& key) {
  if (key.pool.empty()) return fmt::format("provider {}", key.provider);
  std::string pool = fmt::format("pool {} of provider {}", key.pool, key.provider);
  return key.label.empty() ? pool : fmt::format("label {} in {}", key.label, pool);
}

std::string PartOf(const BreakerKey& key) {
  if (key.pool.empty()) return "the provider";
  return key.label.empty() ? fmt::format("pool {}", key.pool)
                           : fmt::format("label {} in pool {}", key.label, key.pool);
}

std::vector<BreakerKey> BreakerKeysOf(const PoolKey& pool, const LabelName& label) {
  return {{pool.provider}, {pool.provider, pool.pool}, {pool.provider, pool.pool, label}};
}

template <class Fields, RecordOf<Breaker> T>
void EachField(Fields& fields, T& breaker) {
  fields("kind", breaker.kind);
  fields("kinds", breaker.kinds);
  fields("failures", breaker.failures);
  fields("attempts", breaker.attempts);
  fields("said", breaker.said);
  fields("opened", breaker.opened);
  fields("next_probe", breaker.next_probe);
  fields("failed_probes", breaker.failed_probes);
  fields("relapses", breaker.relapses);
  fields("good_probes", breaker.good_probes);
  fields("prober", breaker.prober);
  fields("tried_anyway", breaker.tried_anyway);
  fields("opened_by", breaker.opened_by);
}

Expected<Breaker> ParseBreaker(std::string_view json) { return ReadRecord(json, Breaker()); }

std::string ToJson(const Breaker& breaker) { return WriteRecord(breaker); }

std::string EvidenceOf(const Breaker& breaker) {
  std::string text = fmt::format("{} of {} launches failed", breaker.failures, breaker.attempts);
  if (breaker.kinds) text += fmt::format(" ({})", Excerpt(*breaker.kinds));
  if (breaker.said) text += ", the last one: " + Excerpt(*breaker.said, kShownError);
  return text;
}

}  // namespace nodepool
