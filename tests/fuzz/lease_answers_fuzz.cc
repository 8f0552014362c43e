// Any bytes as a server's answer about a lease. What is read of it can stand in ssh's files: each node adds
// the lines that it should and no others.
#include <algorithm>
#include <cstdint>

#include "cli/server/lease_claim.h"
#include "net/ssh/ssh_files.h"

namespace nodepool::cli {
namespace {

std::ptrdiff_t LinesOf(const std::vector<net::SshNode>& nodes) {
  std::string text =
      net::SshConfigText(nodes, "/tmp/folder", net::LoginOptions()) + net::KnownHostsText(nodes);
  return std::ranges::count(text, '\n');
}

void Check(const net::SshNode& node) {
  std::ptrdiff_t own = LinesOf({node}) - LinesOf({});
  std::ptrdiff_t expected =
      5 + (node.user.empty() ? 0 : 1) + static_cast<std::ptrdiff_t>(node.host_keys.size());
  if (own != expected || node.address.starts_with('-') || node.id.size() != 10) __builtin_trap();
}

}  // namespace
}  // namespace nodepool::cli

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool;
  auto lease = cli::ReadLeaseView({reinterpret_cast<const char*>(data), size});
  if (!lease) return 0;
  if (!IsLeaseId(lease->id.value) || lease->lasts <= Duration::zero()) __builtin_trap();
  for (const auto& [id, record] : lease->nodes) {
    if (auto node = net::SshNodeOf(id, record)) cli::Check(*node);
  }
  return 0;
}
