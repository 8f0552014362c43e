#include "drivers/static/static_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/this_host.h"
#include "config/schema/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

using config::Schema;
using config::Section;
using config::Setting;

namespace {

Schema Texts() { return Schema::OneOf({Schema::String(), Schema::List(Schema::String())}); }

Schema NodeSchema() {
  return Schema::Map({
      Setting("name", Schema::String(), "Host name or address.").Required(),
      Setting("labels", Texts(), "Labels under which the host is offered.").Required(),
      Setting("username", Schema::String(), "User for logging in.").Default("zuul"),
      Setting("timeout", Schema::Int(), "Time for the scan of its host keys.").Default(5).Unit("seconds"),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys before use.").Default(true),
      Setting("host-key", Texts(),
              "Expected keys, as type and base64 text; default: whatever the scan finds."),
      Setting("connection-port", Schema::Int(), "Port for logging in.").Default(22),
      Setting("connection-type", Schema::String(), "How to connect: ssh, winrm, network_cli ...")
          .Default("ssh"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
      Setting("python-path", Schema::String(), "Python interpreter on the host.").Default("auto"),
      Setting("max-parallel-jobs", Schema::Int(), "Nodes that the host is handed out as at a time.")
          .Default(1),
      Setting("ssh-port", Schema::Int(), "Older name of connection-port.").DaemonOnly(),
  });
}

Schema MakeSchema() {
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool."),
      Setting("nodes", Schema::List(NodeSchema()), "The hosts."),
  });
  return Schema::Map(
      {Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of hosts.").RequiredByValidator()});
}

// Splits texts at blanks: a text with blanks names several labels.
std::vector<std::string> Words(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    std::size_t start = text.find_first_not_of(" \t");
    while (start != std::string::npos) {
      std::size_t end = text.find_first_of(" \t", start);
      words.push_back(text.substr(start, end - start));
      start = text.find_first_not_of(" \t", end);
    }
  }
  return words;
}

StaticNode ReadNode(const Section& section, const config::Config& config) {
  StaticNode node;
  node.name = section.Text("name");
  if (node.name.empty()) throw section.Fail("name", "is required");
  for (const std::string& word : Words(section.TextList("labels"))) {
    LabelName label = CheckLabelName(word, section, "labels", config);
    if (std::ranges::find(node.labels, label) == node.labels.end()) node.labels.push_back(label);
  }
  node.connection.username = section.Text("username");
  node.connection.python_path = section.Text("python-path");
  node.connection.shell_type = section.OptionalText("shell-type");
  node.connection.connection_type = section.Text("connection-type");
  const char* port_key =
      section.Has("ssh-port") && !section.Has("connection-port") ? "ssh-port" : "connection-port";
  std::int64_t port = section.Int(port_key);
  if (port < 1 || port > 65535) throw section.Fail(port_key, "expected a port from 1 to 65535");
  node.connection.connection_port = static_cast<int>(port);
  node.timeout = section.Seconds("timeout");
  node.host_key_checking = section.Bool("host-key-checking");
  node.host_keys = section.TextList("host-key");
  // Each slot is a record in ZooKeeper.
  constexpr int kMaxSlots = 10'000;
  node.max_parallel_jobs = ReadCount(section, "max-parallel-jobs");
  if (node.max_parallel_jobs > kMaxSlots) throw section.Fail("max-parallel-jobs", "expected at most 10000");
  return node;
}

// The hosts of a provider so far, with their lines.
using HostLines = std::map<HostIdentity, int>;

// The later entry of a host is not used (drivers.md 7.2).
void NoteHost(const Section& section, const StaticNode& node, HostLines& known, config::Config& config) {
  auto [first, is_new] = known.try_emplace(IdentityOf(node), section.value().position().line);
  if (is_new) return;
  std::string message = fmt::format("host {} is listed again and not used: line {} has it",
                                    first->first.ToString(), first->second);
  config.warnings.push_back(section.Fail("name", message).In(config.path).message());
}

std::shared_ptr<const StaticPool> ReadStaticPool(const Section& section, const Section& provider,
                                                 HostLines& known, config::Config& config) {
  auto pool = std::make_shared<StaticPool>();
  ReadPool(section, provider, *pool);
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
  static const Schema schema = MakeSchema();
  return schema;
}

std::shared_ptr<const StaticConfig> LoadStaticConfig(const config::ProviderSection& section,
                                                     config::Config& config) {
  auto result = std::make_shared<StaticConfig>();
  Section provider = OpenProvider(section, StaticSchema());
  ReadProvider(section, provider, *result);
  HostLines known;
  for (const Section& pool_section : provider.Sections("pools")) {
    std::shared_ptr<const StaticPool> pool = ReadStaticPool(pool_section, provider, known, config);
    auto is_here = [](const StaticNode& node) { return IsThisHost(node.name); };
    if (std::ranges::any_of(pool->nodes, is_here)) result->reaches_this_host = true;
    result->pools[pool->name] = pool;
  }
  return result;
}

}  // namespace nodepool::drivers
