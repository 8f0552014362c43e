#include "driver/loading/load_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include "base/log/logging.h"
#include "model/component.h"
#include "model/image.h"

namespace nodepool::driver {

namespace {

using config::Value;
using Images = std::map<ImageName, config::DiskImage>;

std::string TextOf(const Value& map, std::string_view key) {
  const Value* value = map.Find(key);
  return value != nullptr && value->is_scalar() ? value->text() : "";
}

// The mapping with another value under a key that it has.
Value WithValue(const Value& map, std::string_view key, Value changed) {
  Value::Map entries = map.map();
  std::ranges::find(entries, key, &Value::Map::value_type::first)->second = std::move(changed);
  return Value::MakeMap(std::move(entries), map.position());
}

// The mapping with its list under `key` changed; without such a list it stays as it is.
Value ChangeList(const Value& map, std::string_view key, const std::function<void(Value::List&)>& change) {
  const Value* list = map.Find(key);
  if (list == nullptr || list->kind() != Value::Kind::kList) return map;
  Value::List items = list->list();
  change(items);
  return WithValue(map, key, Value::MakeList(std::move(items), list->position()));
}

Value CopyFor(const Value& label, const LabelName& name) {
  return WithValue(label, "name", Value::String(name.value, label.Find("name")->position()));
}

void AddCopies(Value::List& labels, const Images& images) {
  std::set<std::string> done;
  Value::List copies;
  for (const Value& label : labels) {
    std::string name = TextOf(label, "name"), image = TextOf(label, "diskimage");
    auto settings = images.find(ImageName(image));
    if (name.empty() || settings == images.end() || !settings->second.validation) continue;
    if (done.insert(image).second) copies.push_back(CopyFor(label, ValidationLabel(LabelName(name))));
  }
  labels.insert(labels.end(), copies.begin(), copies.end());
}

}  // namespace

config::ProviderSection WithValidationLabels(config::ProviderSection section, const Images& images) {
  bool is_any =
      std::ranges::any_of(images, [](const auto& image) { return image.second.validation.has_value(); });
  if (!is_any || section.source.kind() != Value::Kind::kMap) return section;
  auto add = [&](Value::List& pools) {
    for (Value& pool : pools)
      pool = ChangeList(pool, "labels", [&](Value::List& labels) { AddCopies(labels, images); });
  };
  section.source = ChangeList(section.source, "pools", add);
  return section;
}

namespace {

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

namespace {

config::DriverSchemas SchemasOf(const Registry& drivers, config::DriverSchemas others) {
  return [&drivers, others = std::move(others)](std::string_view name) -> const config::Schema* {
    Driver* driver = drivers.Find(name);
    if (driver == nullptr) return others ? others(name) : nullptr;
    static const config::Schema anything = config::Schema::Any();
    try {
      return &driver->ProviderSchema();
    } catch (...) {
      log::Logger("nodepool.driver.Drivers")
          .Error("Driver {} provides no schema; its sections are not checked: {}", name,
                 MessageOf(std::current_exception()));
      return &anything;
    }
  };
}

void ResetDrivers(const Registry& drivers) {
  for (const std::string& name : drivers.Names()) {
    try {
      drivers.Find(name)->Reset();
    } catch (...) {
      log::Logger("nodepool.driver.Drivers")
          .Error("Driver {} failed in Reset: {}", name, MessageOf(std::current_exception()));
    }
  }
}

// What is wrong with what a driver made of a section; empty: nothing.
std::string WhyUnusable(const ProviderConfig* provider, const ProviderName& name) {
  if (provider == nullptr || provider->name != name) return "it made nothing of the section";
  for (const auto& [pool_name, pool] : provider->pools) {
    for (const auto& [label_name, label] : pool->labels) {
      if (label->key() != LabelKey{pool_name, label_name})
        return fmt::format("label {} does not name its pool {}; add labels with PoolConfig::Offer",
                           label_name, pool_name);
    }
  }
  return "";
}

// ZooKeeper takes 1,048,575 bytes at a time; what a launcher adds to its pool's labels is far below the rest.
constexpr std::size_t kLargestAnnouncement = 1'040'000;

config::Position PlaceOfPool(const config::Value& section, const PoolName& name) {
  const config::Value* pools = section.Find("pools");
  if (pools == nullptr || pools->kind() != config::Value::Kind::kList) return section.position();
  for (const config::Value& pool : pools->list()) {
    const config::Value* found = pool.Find("name");
    if (found != nullptr && found->is_scalar() && found->text() == name.value) return pool.position();
  }
  return section.position();
}

// A pool that cannot be announced would get no request.
Expected<void> CheckAnnouncements(const config::ProviderSection& section, const LoadedConfig& loaded) {
  auto provider = loaded.providers.find(section.name);
  if (provider == loaded.providers.end()) return {};
  for (const auto& [name, pool] : provider->second->pools) {
    Component announcement;
    announcement.kind = ComponentKind::kPool;
    for (const auto& [label_name, label] : pool->labels) announcement.supported_labels.push_back(label_name);
    std::size_t size = ToJson(announcement).size();
    if (size <= kLargestAnnouncement) continue;
    std::string message = fmt::format(
        "pool {} of provider {} announces {} labels, in {} bytes, and ZooKeeper takes {}; use several pools",
        name, section.name, pool->labels.size(), size, kLargestAnnouncement);
    return std::unexpected(config::ErrorAt(PlaceOfPool(section.source, name), message));
  }
  return {};
}

// Reads one provider's section. The error is what is wrong with it; of a driver that fails
// the provider is left out, with a warning.
Expected<void> LoadSection(const config::ProviderSection& section, const Registry& drivers,
                           LoadedConfig& loaded) {
  auto skip = [&](const std::string& why) {
    config::Position position = section.source.position();
    loaded.common.warnings.push_back(fmt::format("{}:{}:{}: provider {} is skipped: {}", loaded.common.path,
                                                 position.line, position.column, section.name, why));
  };
  Driver* driver = drivers.Find(section.driver);
  if (driver == nullptr) {
    skip(fmt::format("this program has no driver {0}; if there is a package nodepool-{0}, install it",
                     section.driver));
    return {};
  }
  try {
    std::shared_ptr<const ProviderConfig> provider =
        driver->LoadProviderConfig(WithValidationLabels(section, loaded.common.diskimages), loaded.common);
    std::string fault = WhyUnusable(provider.get(), section.name);
    if (fault.empty()) {
      loaded.providers[section.name] = std::move(provider);
    } else {
      skip(fmt::format("its driver {} failed: {}", section.driver, fault));
    }
  } catch (const Error& error) {
    return std::unexpected(error);
  } catch (...) {
    skip(fmt::format("its driver {} failed: {}", section.driver, MessageOf(std::current_exception())));
  }
  return {};
}

constexpr std::string_view kServers = "zookeeper-servers";

// The file, or at least the sections that say how ZooKeeper and the web servers are reached.
Expected<config::Document> ReadWhatCanBe(const std::string& path, const config::Environment& environment,
                                         std::vector<Error>& faults) {
  Expected<std::string> text = config::ReadText(path, environment);
  if (!text) return std::unexpected(text.error());
  Expected<config::Document> whole = config::ParseDocument(*text);
  if (whole) return whole;
  faults.push_back(whole.error().In(path));
  Expected<config::Document> part =
      config::ParseDocument(config::OnlySections(*text, {"zookeeper-", "embedded-zookeeper", "webapp"}));
  bool has_servers = text->find(kServers) != std::string::npos;
  bool is_complete = part && (!has_servers || part->root.Find(kServers) != nullptr);
  if (!is_complete) return std::unexpected(faults.front());
  if (part->root.is_null()) part->root = config::Value::MakeMap({}, {});
  return part;
}

}  // namespace

Expected<PartialConfig> LoadWhatCanBe(const std::string& path, const std::optional<std::string>& secure_path,
                                      const Registry& drivers, config::DriverSchemas others) {
  ResetDrivers(drivers);
  config::LoadOptions options = LoadOptionsFor(drivers, std::move(others), secure_path);
  PartialConfig partial;
  Expected<config::Document> document = ReadWhatCanBe(path, options.environment, partial.faults);
  if (!document) return std::unexpected(document.error());
  config::LoadResult common = config::LoadAll(path, document, options);
  std::ranges::move(common.faults, std::back_inserter(partial.faults));
  if (!common.knows_zookeeper) return std::unexpected(partial.faults.front());
  auto loaded = std::make_shared<LoadedConfig>();
  loaded->common = std::move(common.config);
  for (const config::ProviderSection& section : loaded->common.providers) {
    Expected<void> read = LoadSection(section, drivers, *loaded);
    if (read) read = CheckAnnouncements(section, *loaded);
    if (!read) partial.faults.push_back(read.error().In(path));
  }
  partial.loaded = std::move(loaded);
  return partial;
}

config::LoadOptions LoadOptionsFor(const Registry& drivers, config::DriverSchemas others,
                                   std::optional<std::string> secure_path) {
  return {.secure_path = std::move(secure_path),
          .drivers = SchemasOf(drivers, std::move(others)),
          .driver_names = drivers.Names()};
}

std::optional<ProviderName> ProviderThatReachesThisHost(const LoadedConfig& config) {
  auto found = std::ranges::find_if(config.providers,
                                    [](const auto& entry) { return entry.second->reaches_this_host; });
  return found == config.providers.end() ? std::nullopt : std::optional(found->first);
}

Expected<std::shared_ptr<const LoadedConfig>> LoadConfig(const std::string& path,
                                                         const std::optional<std::string>& secure_path,
                                                         const Registry& drivers,
                                                         config::DriverSchemas others) {
  ResetDrivers(drivers);
  Expected<config::Config> common =
      config::Load(path, LoadOptionsFor(drivers, std::move(others), secure_path));
  if (!common) return std::unexpected(common.error());
  auto loaded = std::make_shared<LoadedConfig>();
  loaded->common = std::move(*common);
  for (const config::ProviderSection& section : loaded->common.providers) {
    Expected<void> read = LoadSection(section, drivers, *loaded);
    if (read) read = CheckAnnouncements(section, *loaded);
    if (!read) return std::unexpected(read.error().In(path));
  }
  return loaded;
}

LoadReport LoadAll(const std::string& path, const Expected<config::Document>& main, const Registry& drivers,
                   const config::LoadOptions& options) {
  ResetDrivers(drivers);
  config::LoadResult common = config::LoadAll(path, main, options);
  LoadReport report{{std::move(common.config), {}}, std::move(common.faults)};
  if (!report.faults.empty()) return report;
  for (const config::ProviderSection& section : report.loaded.common.providers) {
    Expected<void> read = LoadSection(section, drivers, report.loaded);
    if (read) {
      Expected<void> announced = CheckAnnouncements(section, report.loaded);
      if (!announced) report.faults.push_back(announced.error().In(path));
      continue;
    }
    Driver& driver = *drivers.Find(section.driver);
    for (const Error& fault : SectionFaults(driver, section, report.loaded.common, read.error())) {
      report.faults.push_back(fault.In(path));
    }
  }
  return report;
}

}  // namespace nodepool::driver
