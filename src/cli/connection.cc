#include "cli/connection.h"

#include <fmt/format.h>

#include "async/deadline.h"
#include "async/event.h"
#include "base/text.h"
#include "config/config_loader.h"
#include "store/whole_tree.h"

namespace nodepool::cli {

zk::WireOptions ConnectionOptions(const config::ZooKeeperSettings& settings) {
  Expected<void> usable = config::CheckZooKeeperSettings(settings);
  if (!usable) throw usable.error();
  zk::WireOptions options;
  for (const config::ZooKeeperServer& server : settings.servers) {
    options.servers.push_back({server.host, server.port});
  }
  options.chroot = settings.chroot;
  options.session_timeout = settings.timeout;
  if (settings.tls) options.tls = zk::TlsFiles{settings.tls->cert, settings.tls->key, settings.tls->ca};
  return options;
}

config::ZooKeeperSettings OrEmbedded(config::ZooKeeperSettings settings) {
  if (!settings.servers.empty()) return settings;
  settings.servers.push_back({"127.0.0.1", settings.embedded.port});
  settings.tls.reset();
  return settings;
}

std::string ServerNames(const config::ZooKeeperSettings& settings) {
  std::vector<std::string> names;
  for (const config::ZooKeeperServer& server : settings.servers) {
    bool is_ipv6 = server.host.find(':') != std::string::npos;
    names.push_back(fmt::format(fmt::runtime(is_ipv6 ? "[{}]:{}" : "{}:{}"), server.host, server.port));
  }
  return Join(names, ",");
}

void FollowSettings(zk::WireClient& client, const config::ZooKeeperSettings& before,
                    const config::ZooKeeperSettings& after) {
  log::Logger logger("nodepool.zk.ZooKeeperClient");
  bool needs_restart =
      before.chroot != after.chroot || before.timeout != after.timeout || before.tls != after.tls;
  if (needs_restart)
    logger.Warning("Changes of chroot, time-out and TLS files take effect at the next start");
  if (before.servers == after.servers) return;
  Expected<void> usable = config::CheckZooKeeperSettings(after);
  if (!usable) return logger.Error("The changed servers cannot be used: {}", usable.error().message());
  client.SetServers(ConnectionOptions(after).servers);
  logger.Info("ZooKeeper servers are now {}", ServerNames(after));
}

Task<> AwaitConnection(Loop& loop, zk::Client& client, std::string servers) {
  log::Logger logger("nodepool.zk.ZooKeeperClient");
  Event changed;
  Subscription watch = client.OnSession([&changed](zk::SessionState) { changed.Set(); });
  Duration patience = std::chrono::seconds(3);
  while (client.state() != zk::SessionState::kConnected) {
    if (client.state() == zk::SessionState::kClosed) {
      throw Error(Verdict::kFail, fmt::format("ZooKeeper at {} refused the connection for good", servers));
    }
    changed.Reset();
    SteadyTime deadline = loop.SteadyNow() + patience;
    bool has_changed = co_await EndsBy(loop, deadline, "a connection to ZooKeeper", changed.Wait());
    if (has_changed) continue;
    logger.Warning("Retrying zookeeper connection: no answer from {} yet", servers);
    patience = std::chrono::seconds(10);
  }
}

Task<> CheckPlaceOfRecords(Loop& loop, Random& random, const config::ZooKeeperSettings& settings) {
  if (settings.python_chroot.empty()) co_return;
  std::string root(store::kWholeTree);
  zk::WireOptions options = ConnectionOptions(settings);
  options.chroot = settings.python_chroot;
  zk::WireClient client(loop, random, options);
  std::exception_ptr error;
  bool is_there = false;
  try {
    co_await AwaitConnection(loop, client, ServerNames(settings));
    zk::Result<zk::Stat> found = co_await client.Exists(root);
    is_there = found.has_value();
  } catch (...) {
    error = std::current_exception();
  }
  if (error && VerdictOf(error) == Verdict::kCancelled) co_await IgnoreCancellation();
  co_await client.Close();
  if (error) std::rethrow_exception(error);
  if (!is_there) co_return;
  throw Error(Verdict::kInvalid,
              fmt::format("with these zookeeper-servers the Python implementation has its records at {}{}, "
                          "while they belong at {}{}: stop everything that works with them, and move them by "
                          "`nodepool migrate to-chroot`",
                          settings.python_chroot, root, settings.chroot, root));
}

}  // namespace nodepool::cli
