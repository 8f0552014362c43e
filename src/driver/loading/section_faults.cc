#include "driver/loading/section_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace nodepool::driver {
namespace {

using config::Value;

constexpr std::string_view kPools = "pools";
// Each trial copies the configuration; of very large sections not all faults are found at once.
constexpr int kMaxTrials = 500;

Value With(const Value& map, std::string_view key, Value::List list) {
  Value::Map entries = map.map();
  auto entry = std::ranges::find(entries, key, &Value::Map::value_type::first);
  if (entry != entries.end()) {
    entry->second = Value::MakeList(std::move(list), entry->second.position());
  }
  return Value::MakeMap(std::move(entries), map.position());
}

bool IsListOfMaps(const Value& value) {
  return value.kind() == Value::Kind::kList && !value.list().empty() &&
         value.list().front().kind() == Value::Kind::kMap;
}

Value WithoutEntries(Value pool) {
  Value::Map entries = pool.map();
  for (const auto& [key, value] : entries) {
    if (IsListOfMaps(value)) pool = With(pool, key, {});
  }
  return pool;
}

class SectionProbe {
 public:
  SectionProbe(Driver& driver, const config::ProviderSection& section, const config::Config& config)
      : driver_(driver), section_(section), config_(config) {}

  // Adds what is wrong with the section when it has these pools alone; true: nothing is.
  bool Try(Value::List pools, std::string_view place = "", std::string_view real_place = "") {
    if (++trials_ > kMaxTrials) return false;
    config::ProviderSection part = section_;
    part.source = With(section_.source, kPools, std::move(pools));
    config::Config config = config_;
    try {
      driver_.LoadProviderConfig(part, config);
      return true;
    } catch (const Error& error) {
      faults_.push_back(WithPlace(error, place, real_place));
    } catch (...) {
      // A driver that fails in another way has not refused anything.
    }
    return false;
  }

  std::vector<Error> Take() { return std::move(faults_); }

 private:
  // An entry that is tried alone is the first of its list, and named so.
  static Error WithPlace(const Error& error, std::string_view place, std::string_view real_place) {
    std::string message = error.message();
    std::size_t found = place.empty() ? std::string::npos : message.find(place);
    if (found != std::string::npos) message.replace(found, place.size(), real_place);
    return Error(error.verdict(), std::move(message));
  }

  Driver& driver_;
  const config::ProviderSection& section_;
  const config::Config& config_;
  std::vector<Error> faults_;
  int trials_ = 0;
};

void TryPool(SectionProbe& probe, const Value& pool, std::size_t index) {
  std::string place = fmt::format("pools[{}]", index);
  Value bare = WithoutEntries(pool);
  if (!probe.Try({bare}, "pools[0]", place)) return;
  for (const auto& [key, list] : pool.map()) {
    if (!IsListOfMaps(list)) continue;
    for (std::size_t i = 0; i < list.list().size(); ++i) {
      probe.Try({With(bare, key, {list.list()[i]})}, fmt::format("pools[0].{}[0]", key),
                fmt::format("{}.{}[{}]", place, key, i));
    }
  }
}

}  // namespace

std::vector<Error> SectionFaults(Driver& driver, const config::ProviderSection& section,
                                 const config::Config& config, const Error& first) {
  const Value* pools = section.source.Find(kPools);
  if (pools == nullptr || !IsListOfMaps(*pools)) return {first};
  SectionProbe probe(driver, section, config);
  if (probe.Try({})) {
    std::size_t index = 0;
    for (const Value& pool : pools->list()) TryPool(probe, pool, index++);
  }
  std::vector<Error> faults = probe.Take();
  if (faults.empty()) return {first};
  return faults;
}

}  // namespace nodepool::driver
