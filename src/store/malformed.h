#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/log/logging.h"
#include "zk/types.h"

namespace nodepool::store {

// Records that cannot be read: each version is logged and counted once (D-08).
class MalformedRecords {
 public:
  explicit MalformedRecords(log::Logger logger) : logger_(std::move(logger)) {}

  void Report(const std::string& path, const zk::Stat& stat, const std::string& fault) {
    auto [it, is_new] = reported_.try_emplace(path, stat.mzxid);
    if (!is_new && it->second == stat.mzxid) return;
    it->second = stat.mzxid;
    ++count_;
    logger_.Error("The record {} is ignored until it is fixed or deleted: {}", path, fault);
  }
  // The record is readable again, or deleted.
  void Discard(const std::string& path) { reported_.erase(path); }

  bool Contains(const std::string& path) const { return reported_.contains(path); }

  std::uint64_t count() const { return count_; }

 private:
  log::Logger logger_;
  std::map<std::string, std::int64_t> reported_;  // mzxid by path
  std::uint64_t count_ = 0;
};

}  // namespace nodepool::store
