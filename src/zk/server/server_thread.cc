#include "zk/server/server_thread.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace nodepool::zk::server {

Task<> ServerThread::Start() {
  auto start = [this] { return server_.Start(); };
  co_await thread_.Run(start);
}

Task<> ServerThread::Stop() {
  auto stop = [this] { return server_.Stop(); };
  co_await thread_.Run(stop);
  thread_.End();
}

void ServerThread::SetClientSecret(std::string secret) {
  boost::asio::post(thread_.loop().context(), [this, secret = std::move(secret)]() mutable {
    server_.SetClientSecret(std::move(secret));
  });
}

}  // namespace nodepool::zk::server
