#include "cli/remote/inventory.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace nodepool::cli {
namespace {

namespace json = boost::json;

// What Ansible takes as a group's name.
std::string GroupName(std::string label) {
  for (char& letter : label) {
    bool is_allowed = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9');
    if (!is_allowed) letter = '_';
  }
  bool has_digit_first = !label.empty() && label.front() >= '0' && label.front() <= '9';
  return has_digit_first ? "_" + label : label;
}

}  // namespace

std::string InventoryText(const std::vector<net::SshNode>& nodes, const std::string& ssh_config) {
  json::object hosts, groups;
  for (const net::SshNode& node : nodes) {
    hosts[node.id] = json::object({{"ansible_connection", "ssh"},
                                   {"ansible_ssh_common_args", "-F " + ssh_config},
                                   {"nodepool_label", node.label},
                                   {"nodepool_address", node.address},
                                   {"nodepool_port", node.port}});
    json::value& group = groups[GroupName(node.label)];
    if (!group.is_object()) group = json::object({{"hosts", json::object()}});
    group.at("hosts").as_object()[node.id] = json::object();
  }
  json::object all{{"hosts", std::move(hosts)}, {"children", std::move(groups)}};
  return json::serialize(json::object({{"all", std::move(all)}})) + "\n";
}

}  // namespace nodepool::cli
