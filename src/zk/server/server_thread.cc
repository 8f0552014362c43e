#include "zk/server/server_thread.h"

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

}  // namespace nodepool::zk::server
