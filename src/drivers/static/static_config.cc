#include "drivers/static/static_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/this_host.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

using driver::ConnectionSettings;

namespace {

// Each slot is a record in ZooKeeper.
constexpr double kMaxSlots = 10'000;

// Blanks in a text separate labels.
void ReadNodeLabels(const Section& section, const std::string& key, StaticNode& node) {
  for (std::string text : section.TextList(key)) {
    std::ranges::replace(text, '\t', ' ');
    for (std::string& word : Split(text, ' ')) {
      LabelName label(std::move(word));
      bool is_known = label.empty() || std::ranges::find(node.labels, label) != node.labels.end();
      if (!is_known) node.labels.push_back(std::move(label));
    }
  }
}

const Bindings<StaticNode>& NodeSettings() {
  static const Schema texts = Schema::OneOf({Schema::String(), Schema::List(Schema::String())});
  static const Bindings<StaticNode> settings = {
      {Setting("name", "Host name or address; with username and connection-port it identifies the host.")
           .Required(),
       &StaticNode::name},
      {Setting("labels", texts, "Labels under which the host is offered; blanks in a text separate several.")
           .Required(),
       ReadNodeLabels},
      {Setting("username", "User for logging in."), &StaticNode::connection, &ConnectionSettings::username},
      {Setting("timeout", "Time for the scan of its host keys."), &StaticNode::timeout},
      {Setting("host-key-checking", "Whether to scan host keys before use."), &StaticNode::host_key_checking},
      {Setting("host-key", texts,
               "Expected keys, as type and base64 text; default: whatever the scan finds."),
       &StaticNode::host_keys},
      {Setting("ssh-port", Schema::Port(), "Older name of connection-port.").DaemonOnly().Inherited(),
       &StaticNode::connection, &ConnectionSettings::connection_port},
      {Setting("connection-port", Schema::Port(), "Port for logging in."), &StaticNode::connection,
       &ConnectionSettings::connection_port},
      {Setting("connection-type", "How to connect: ssh, winrm, network_cli ..."), &StaticNode::connection,
       &ConnectionSettings::connection_type},
      {Setting("shell-type", "Shell of the user, as Ansible names it."), &StaticNode::connection,
       &ConnectionSettings::shell_type},
      {Setting("python-path", "Python interpreter on the host."), &StaticNode::connection,
       &ConnectionSettings::python_path},
      {Setting("max-parallel-jobs", Schema::Int().AtMost(kMaxSlots),
               "Nodes that the host is handed out as at a time, at most 10000."),
       &StaticNode::max_parallel_jobs},
  };
  return settings;
}

const Bindings<StaticPool>& StaticPoolSettings() {
  static const Bindings<StaticPool> settings =
      Bindings<StaticPool>(PoolSettings().With(driver::OptionalPoolName()))
          .With({Setting("nodes", Schema::List(NodeSettings().ToSchema()), "The hosts.")});
  return settings;
}

const Bindings<StaticConfig>& StaticSettings() {
  static const Bindings<StaticConfig> settings = {
      Setting("pools", Schema::List(StaticPoolSettings().ToSchema()), "Groups of hosts.")
          .RequiredByValidator(),
  };
  return settings;
}

StaticNode ReadNode(const Section& section, const config::Config& config) {
  StaticNode node;
  NodeSettings().Read(section, node);
  if (node.name.empty()) throw section.Fail("name", "is required");
  for (const LabelName& label : node.labels) CheckLabelName(label, section, "labels", config);
  return node;
}

// The hosts of a provider so far, with their lines.
using HostLines = std::map<HostIdentity, int>;

// The later entry of a host is not used (drivers.md 7.2).
void NoteHost(const Section& section, const StaticNode& node, HostLines& known, config::Config& config) {
  auto [first, is_new] = known.try_emplace(IdentityOf(node), section.value().position().line);
  if (is_new) return;
  Warn(config, section, "name",
       fmt::format("host {} is listed again and not used: line {} has it", first->first.ToString(),
                   first->second));
}

std::shared_ptr<const StaticPool> ReadStaticPool(const Section& section, const StaticConfig& provider,
                                                 HostLines& known, config::Config& config) {
  std::shared_ptr<StaticPool> pool = ReadPool(section, StaticPoolSettings(), provider);
  for (const Section& node_section : section.Sections("nodes")) {
    StaticNode node = ReadNode(node_section, config);
    for (const LabelName& name : node.labels) {
      auto label = std::make_shared<driver::LabelConfig>();
      label->name = name;
      label->connection = node.connection;
      label->host_key_checking = node.host_key_checking;
      if (!pool->labels.contains(name)) pool->Offer(std::move(label));
    }
    NoteHost(node_section, node, known, config);
    pool->nodes.push_back(std::move(node));
  }
  return pool;
}

}  // namespace

std::string HostIdentity::ToString() const { return username + "@" + name + ":" + std::to_string(port); }

HostIdentity IdentityOf(const StaticNode& node) {
  return {node.name, node.connection.username.value_or(""), node.connection.connection_port};
}

const Schema& StaticSchema() {
  static const Schema schema = StaticSettings().ToSchema();
  return schema;
}

std::shared_ptr<const StaticConfig> LoadStaticConfig(const config::ProviderSection& section,
                                                     config::Config& config) {
  auto result = std::make_shared<StaticConfig>();
  Section provider = ReadProvider(section, StaticSettings(), *result);
  HostLines known;
  for (const Section& pool_section : provider.Sections("pools")) {
    std::shared_ptr<const StaticPool> pool = ReadStaticPool(pool_section, *result, known, config);
    auto is_here = [](const StaticNode& node) { return IsThisHost(node.name); };
    if (std::ranges::any_of(pool->nodes, is_here)) result->reaches_this_host = true;
    result->pools[pool->name] = pool;
  }
  return result;
}

}  // namespace nodepool::drivers
