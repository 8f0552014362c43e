#pragma once

#include "driver/observer.h"
#include "driver/provider_environment.h"

namespace nodepool::driver::cloud {

// The provider around an adapter, as the adapter sees it. Calls are cheap, and made on the loop, but not from
// the adapter's constructor. This class itself is for an adapter that a builder or a command uses for a few
// calls: nobody wants to know anything of it.
class Framework {
 public:
  virtual ~Framework() = default;
  // The cloud announces that it takes machines away, and its lists show a new machine at once:
  // Adapter::MissingMachines is called at once, and again soon.
  virtual void MachinesTaken() {}
  // The cloud announces its limits, or what others use of them: both are read again, at most once a second.
  virtual void QuotaChanged() {}
  // QuotaForLabel, which is asked once for each label, would answer differently now.
  virtual void NeedsChanged() {}
  // What LabelReady answers has changed, or capacity has for a reason that the node records do not show:
  // waiting requests are considered again.
  virtual void CapacityChanged() {}
  // Whether records of this provider's images exist. If not, none can have leaked, so none need be listed.
  virtual bool HasImages() const { return true; }
};

// What an adapter may use. Everything outlives it.
struct AdapterEnvironment : DriverEnvironment {
  Framework& framework;
  // Null when nobody wants to know.
  ProviderObserver* observer = nullptr;
};

}  // namespace nodepool::driver::cloud
