#include "config/provider_settings.h"

#include "config/schema/bindings.h"

namespace nodepool::config {
namespace {

// A boolean, or a mapping of thresholds.
Binding<ProviderSettings> Breaker() {
  Schema time = Schema::Int().Between(1, 86400);
  static const Bindings<BreakerSettings> thresholds = {
      {Setting("failures", Schema::Int().Between(1, 20), "Launches that failed, at least."),
       &BreakerSettings::failures},
      {Setting("share", Schema::Int().Between(1, 100), "They are at least this part of all.").Unit("percent"),
       &BreakerSettings::share},
      {Setting("window", time, "Older launches do not count."), &BreakerSettings::window},
      {Setting("probe-after", time, "The pause before a launch is tried; it doubles when that fails."),
       &BreakerSettings::probe_after},
      {Setting("probe-max", time, "The longest pause."), &BreakerSettings::probe_max},
  };
  return {Setting("breaker", Schema::OneOf({Schema::Bool(), thresholds.ToSchema()}),
                  "When requests go elsewhere since launches fail here; false: they do not."),
          [](const Section& section, const std::string& key, ProviderSettings& settings) {
            if (section.IsMapping(key)) {
              thresholds.Read(section.Sub(key), settings.breaker);
            } else if (section.IsGiven(key)) {
              settings.breaker.is_on = section.Bool(key);
            }
          }};
}

}  // namespace

const Bindings<ProviderSettings>& CommonSettings() {
  static const Bindings<ProviderSettings> settings = {
      Setting("name", Schema::String(), "Unique name of the provider.").Required(),
      Setting("driver", Schema::String(), "Kind of the provider.").Default("openstack"),
      {Setting("max-concurrency", "Nodes launched at the same time; 0 or less: no bound.").Unit("nodes"),
       &ProviderSettings::max_concurrency},
      {Setting("priority", "Priority of its pools; the lowest is asked first."), &ProviderSettings::priority},
      Breaker(),
  };
  return settings;
}

Schema WithCommonSettings(const Schema& driver_schema) {
  static const Schema common = CommonSettings().ToSchema();
  return driver_schema.kind() == Schema::Kind::kMap ? driver_schema.With(common.settings()) : driver_schema;
}

}  // namespace nodepool::config
