#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "async/loop.h"

namespace nodepool::net {

// While it lives, a deadline for whatever is done with the socket: when it passes, the
// socket is closed, which ends every operation under way.
class HangUpLater {
 public:
  HangUpLater(Loop& loop, boost::asio::ip::tcp::socket& socket, Duration limit)
      : loop_(loop), timer_(loop.clock().CallAt(loop.SteadyNow() + limit, [&socket] {
          boost::system::error_code ignored;
          socket.close(ignored);
        })) {}
  ~HangUpLater() { loop_.clock().CancelTimer(timer_); }
  HangUpLater(const HangUpLater&) = delete;
  HangUpLater& operator=(const HangUpLater&) = delete;

 private:
  Loop& loop_;
  Clock::TimerId timer_;
};

}  // namespace nodepool::net
