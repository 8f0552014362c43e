#include "web/access/attempts.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace nodepool::web {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(250);
constexpr Duration kLongestPause = std::chrono::seconds(30);
constexpr Duration kMemory = std::chrono::minutes(10);
constexpr int kMaxDoublings = 7;

Duration PauseAfter(int failures) {
  return std::min(kLongestPause, kFirstPause * (1 << std::min(failures - 1, kMaxDoublings)));
}

}  // namespace

Duration Attempts::PauseOf(const std::string& key, SteadyTime now) const {
  auto known = failures_.find(key);
  if (known == failures_.end() || now - known->second.last > kMemory) return Duration::zero();
  return std::max(Duration::zero(), known->second.last + PauseAfter(known->second.count) - now);
}

void Attempts::Failed(const std::string& key, SteadyTime now) {
  DropOld(now);
  auto [entry, is_new] = failures_.try_emplace(key);
  if (is_new) order_.push_back(key);
  ++entry->second.count;
  entry->second.last = now;
}

std::string NetworkOf(const std::string& address) {
  constexpr std::size_t kNetworkBytes = 8;
  boost::system::error_code failed;
  boost::asio::ip::address parsed = boost::asio::ip::make_address(address, failed);
  if (failed || !parsed.is_v6()) return address;
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

// What failed lately but is among the oldest keys stays, unless there are too many.
void Attempts::DropOld(SteadyTime now) {
  while (!order_.empty()) {
    auto oldest = failures_.find(order_.front());
    bool is_recent = now - oldest->second.last <= kMemory;
    if (is_recent && failures_.size() < kMaxKeys) return;
    failures_.erase(oldest);
    order_.pop_front();
  }
}

}  // namespace nodepool::web
