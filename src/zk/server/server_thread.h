#pragma once

#include "async/blocking_pool.h"
#include "async/loop_thread.h"
#include "zk/server/server.h"

namespace nodepool::zk::server {

// A Server on a thread of its own, so that its clients cannot delay what else the process does.
// Only bytes cross: the process is its client over TCP like any other. Start() and Stop() are
// called on the process's loop.
class ServerThread {
 public:
  explicit ServerThread(ServerOptions options) : server_(thread_.loop(), disk_, std::move(options)) {}
  ~ServerThread() { thread_.End(); }

  // As those of Server. After Stop() the thread has ended.
  Task<> Start();
  Task<> Stop();
  // As that of Server, while it is started. From any thread; does not wait.
  void SetClientSecret(std::string secret);

  // For those who watch over loops.
  Loop& loop() { return thread_.loop(); }

 private:
  LoopThread thread_{"zookeeper"};
  BlockingPool disk_{1};
  Server server_;
};

}  // namespace nodepool::zk::server
