#pragma once

#include "config/schema/schema.h"
#include "model/breaker.h"

namespace nodepool::config {

template <class Target>
class Bindings;  // schema/bindings.h

// What a provider's section may say whatever its driver is (configuration.md 9.1), beside name and driver.
struct ProviderSettings {
  int max_concurrency = -1;  // launches in progress; ≤ 0 means unlimited (D-20)
  int priority = 100;        // of its pools that have none of their own
  BreakerSettings breaker;   // breaker.md 5
};

const Bindings<ProviderSettings>& CommonSettings();

// A driver's provider section together with the common settings, which replace those of the same name. Any()
// remains Any().
Schema WithCommonSettings(const Schema& driver_schema);

}  // namespace nodepool::config
