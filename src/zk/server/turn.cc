#include "zk/server/turn.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

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
  co_await boost::asio::post(loop_.context(), boost::asio::use_awaitable);
  ends_ = loop_.SteadyNow() + kTurn;
}

}  // namespace nodepool::zk::server
