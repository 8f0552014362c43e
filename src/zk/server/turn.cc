#include "zk/server/turn.h"

namespace nodepool::zk::server {
namespace {

constexpr Duration kTurn = std::chrono::milliseconds(5);

}  // namespace

bool Turn::Covers(bool is_long) {
  bool is_first = std::exchange(is_first_, false);
  return (is_first && !is_long) || (ends_ && loop_.SteadyNow() < *ends_);
}

void Turn::End() {
  ends_.reset();
  pass_ = {};
}

Task<> Turn::Begin() {
  End();
  pass_ = co_await gate_.Enter();
  co_await loop_.GiveWay();
  ends_ = loop_.SteadyNow() + kTurn;
}

}  // namespace nodepool::zk::server
