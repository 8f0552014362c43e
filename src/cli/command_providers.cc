#include "cli/command_providers.h"

#include "driver/loading/guarded_provider.h"

namespace nodepool::cli {

CommandProviders::CommandProviders(store::Store& store, Loop& loop, Random& random, zk::Client& client,
                                   BlockingPool& pool, const driver::Registry& drivers)
    : loop_(loop),
      random_(random),
      pool_(pool),
      drivers_(drivers),
      nodes_(loop, client),
      images_(loop, client),
      records_{store, nodes_, images_} {}

std::unique_ptr<driver::Provider> CommandProviders::Make(
    std::shared_ptr<const driver::ProviderConfig> config) {
  driver::ProviderEnvironment environment{loop_, random_, pool_, records_, [] {}};
  environment.is_for_one_command = true;
  return driver::CreateGuarded(drivers_, std::move(environment), std::move(config));
}

}  // namespace nodepool::cli
