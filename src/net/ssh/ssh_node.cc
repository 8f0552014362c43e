#include "net/ssh/ssh_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::net {
namespace {

constexpr std::string_view kLettersAndDigits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool IsWord(std::string_view text, std::string_view others) {
  auto is_allowed = [&](char letter) {
    return kLettersAndDigits.find(letter) != std::string_view::npos ||
           others.find(letter) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, is_allowed);
}

bool IsHostKey(std::string_view key) {
  std::size_t blank = key.find(' ');
  return blank != std::string_view::npos && IsWord(key.substr(0, blank), "-.@") &&
         IsWord(key.substr(blank + 1), "+/=");
}

std::unexpected<Error> Unusable(const NodeId& id, std::string why) {
  return std::unexpected(
      Error(Verdict::kInvalid, fmt::format("Node {} cannot be logged in to: {}", id, why)));
}

}  // namespace

Expected<SshNode> SshNodeOf(const NodeId& id, const Node& node) {
  const std::string& type = node.connection_type.value_or("ssh");
  if (type != "ssh")
    return Unusable(id, fmt::format("its connection type is {}, and only ssh is supported", Excerpt(type)));
  std::string address = node.interface_ip.value_or("");
  if (!IsWord(address, ".:-_%")) return Unusable(id, fmt::format("its address is \"{}\"", Excerpt(address)));
  std::string user = node.username.value_or("");
  if (!user.empty() && !IsWord(user, "._-$@"))
    return Unusable(id, fmt::format("its user is \"{}\"", Excerpt(user)));
  const boost::json::value port = node.connection_port.value();
  if (!port.is_int64() || port.as_int64() < 1 || port.as_int64() > 65535) {
    return Unusable(id, "its connection port is not a number from 1 to 65535");
  }
  if (!std::ranges::all_of(node.host_keys, IsHostKey))
    return Unusable(id, "its host keys are not \"<type> <base64>\"");
  std::string label = node.type.empty() ? std::string() : node.type.front().value;
  return SshNode{id.value, label, address, port.as_int64(), user, node.host_keys};
}

}  // namespace nodepool::net
