#include "cli/await_server.h"

#include <fmt/format.h>

#include "async/deadline.h"
#include "daemon/connection.h"

namespace nodepool::cli {

ServerAwaiter::ServerAwaiter(Loop& loop, ServerWait wait, zk::WireOptions& options)
    : loop_(loop), wait_(std::move(wait)) {
  if (wait_.asked) return;
  options.on_trouble = [this](const std::string& why) {
    trouble_ = why;
    changed_.Set();
  };
}

Task<> ServerAwaiter::Await(zk::Client& client) {
  return wait_.asked ? AwaitAsAsked(client) : AwaitQuietly(client);
}

Task<> ServerAwaiter::AwaitQuietly(zk::Client& client) {
  Subscription watch = client.OnSession([this](zk::SessionState) { changed_.Set(); });
  SteadyTime deadline = loop_.SteadyNow() + wait_.usual;
  while (client.state() != zk::SessionState::kConnected) {
    if (client.state() == zk::SessionState::kClosed) throw daemon::RefusedForGood(wait_.servers);
    if (IsRefused()) throw NoServer(wait_.usual);
    changed_.Reset();
    bool has_changed = co_await EndsBy(loop_, deadline, "a connection to ZooKeeper", changed_.Wait());
    if (!has_changed) throw NoServer(wait_.usual);
  }
  Task<> check = daemon::CheckAdmission(client, wait_.servers);
  bool is_answered = co_await EndsBy(loop_, deadline, "an answer of ZooKeeper", std::move(check));
  if (!is_answered) throw NoServer(wait_.usual);
}

Task<> ServerAwaiter::AwaitAsAsked(zk::Client& client) {
  Duration limit = *wait_.asked;
  Task<> connection = daemon::AwaitConnection(loop_, client, wait_.servers);
  if (limit == Duration::max()) {
    co_await std::move(connection);
    co_return;
  }
  SteadyTime deadline = loop_.SteadyNow() + limit;
  bool is_there = co_await EndsBy(loop_, deadline, "a connection to ZooKeeper", std::move(connection));
  if (!is_there) throw NoServer(limit);
}

Error ServerAwaiter::NoServer(Duration waited) const {
  std::string reason = trouble_.empty() ? wait_.servers : trouble_;
  if (wait_.is_embedded) {
    return Error(
        Verdict::kFail,
        fmt::format("nodepool standalone does not run ({}); start it, or wait for it with --wait-for-server",
                    reason));
  }
  double seconds = std::chrono::duration<double>(waited).count();
  return Error(Verdict::kFail,
               fmt::format("no ZooKeeper server answered within {} s ({}); check zookeeper-servers, or "
                           "wait longer with --wait-for-server",
                           seconds, reason));
}

}  // namespace nodepool::cli
