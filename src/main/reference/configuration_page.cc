#include <fmt/format.h>

#include "config/config_loader.h"
#include "config/main_schema.h"
#include "config/provider_settings.h"
#include "config/schema/schema_docs.h"
#include "drivers/schemas/known_drivers.h"
#include "main/reference/pages.h"

namespace nodepool::reference {
namespace {

constexpr std::string_view kAboutSettings = R"(# Configuration reference

Made from the declarations that also check the file; [Configure](../operator/configure.md) says how the parts
play together. Paths: `pools[].name` is the key `name` of each entry of the list `pools`. *reload*: a running
daemon takes the change from the file within a second or two, without a restart. Durations without a
unit are seconds.

)";

constexpr std::string_view kTimeouts = R"(## Time-outs

Every call to the outside ends. What has no setting above:

| what | ends after | then |
| --- | --- | --- |
| connecting to ZooKeeper: TCP, TLS and session together | 5 s | the next server, with pauses that grow from 0.1 s to 5 s |
| a ZooKeeper session without contact | `zookeeper-timeout` | its locks are free; what was done under them is dropped |
| starting a provider | 60 s | tried again with pauses that grow from 1 s to 60 s |
| one deletion of a node | 600 s | tried again with pauses that grow from 5 s to 60 s |
| one sweep for leaked resources, per provider | 600 s | the next minute's sweep |
| one connection attempt of a host key scan | 10 s | another attempt until `boot-timeout` |
| removing a component's entry at a stop | 5 s | it vanishes with the session |
)";

std::string Section(std::string_view title, std::string_view text, const config::Schema& schema) {
  return fmt::format("## {}\n\n{}\n\n{}\n", title, text, config::ToMarkdown(schema));
}

std::string ProviderSection(std::string_view driver, std::string_view text, const config::Schema& schema) {
  return Section(fmt::format("Provider section, driver {}", driver), text,
                 config::WithCommonSettings(schema));
}

}  // namespace

std::string ConfigurationPage(const driver::Registry& drivers) {
  std::string page(kAboutSettings);
  page += Section("nodepool.yaml", "The top level. Entries of `providers` depend on their driver, see below.",
                  config::MainSchema());
  page += Section("The secure file", "Read by the daemons when given with `-s`; its values win.",
                  config::SecureSchema());
  for (const std::string& name : drivers.Names())
    page += ProviderSection(name, "An entry of `providers`.", drivers.Find(name)->ProviderSchema());
  for (std::string_view name : drivers::KnownDriverNames()) {
    const config::Schema* schema = drivers::KnownDriverSchema(name);
    if (drivers.Find(name) != nullptr || !config::IsFullyKnown(*schema)) continue;
    page += ProviderSection(
        name, "An entry of `providers`. The section is checked; the driver is not part of the programs.",
        *schema);
  }
  page += kTimeouts;
  return page;
}

}  // namespace nodepool::reference
