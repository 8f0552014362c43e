#include "daemon/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "config/config_loader.h"
#include "store/whole_tree.h"
#include "zk/server/server.h"

namespace nodepool::daemon {

namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 200;

[[noreturn]] void Refuse(const std::string& file, const std::string& why) {
  throw Error(
      Verdict::kInvalid,
      fmt::format("embedded-zookeeper: the secret of its clients, {}, cannot be used: {}", file, why));
}

// Under its final name the file is complete from the beginning, and never replaced.
void Make(const std::string& file) {
  using zk::server::NewPassword;
  std::string secret = Hex(NewPassword() + NewPassword()) + "\n";
  std::string unfinished = fmt::format("{}.{}", file, getpid());
  int written = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (written < 0) Refuse(file, std::strerror(errno));
  ScopeExit remove([&] {
    close(written);
    unlink(unfinished.c_str());
  });
  bool is_whole = write(written, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size());
  if (!is_whole || fsync(written) != 0) Refuse(file, std::strerror(errno));
  if (link(unfinished.c_str(), file.c_str()) != 0 && errno != EEXIST) Refuse(file, std::strerror(errno));
}

// The first bytes of the file; none: errno says why.
std::optional<std::string> Read(const std::string& file) {
  int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) return std::nullopt;
  ScopeExit close_file([&] { close(opened); });
  std::array<char, kLongest> bytes{};
  ssize_t size = read(opened, bytes.data(), bytes.size());
  if (size < 0) return std::nullopt;
  return std::string(Trim(std::string_view(bytes.data(), static_cast<std::size_t>(size))));
}

bool IsUsable(const std::string& secret) {
  return secret.size() >= kShortest && secret.size() < kLongest &&
         std::ranges::all_of(secret, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string ClientSecretFile(const config::EmbeddedZooKeeper& embedded) {
  return embedded.state_dir + "/zookeeper.secret";
}

std::string MakeClientSecret(const std::string& file) {
  std::optional<std::string> secret = Read(file);
  if (!secret && errno == ENOENT) {
    Make(file);
    secret = Read(file);
  }
  if (!secret) Refuse(file, std::strerror(errno));
  if (!IsUsable(*secret))
    Refuse(file, "it has to be one word of 16 to 199 characters; without the file the next start makes one");
  return std::move(*secret);
}

std::optional<zk::DigestAuth> ClientCredentials(const std::string& file) {
  std::optional<std::string> secret = Read(file);
  if (!secret && errno == ENOENT) return std::nullopt;
  return zk::DigestAuth{std::string(zk::server::kClientUser), secret && IsUsable(*secret) ? *secret : ""};
}

namespace {

Task<bool> HasRecords(Loop& loop, zk::Client& client, std::string servers) {
  co_await AwaitConnection(loop, client, std::move(servers));
  std::string root(store::kWholeTree);
  zk::Result<zk::Stat> found = co_await client.Exists(root);
  co_return found.has_value();
}

}  // namespace

zk::WireOptions ConnectionOptions(const config::ZooKeeperSettings& settings) {
  Expected<void> usable = config::CheckZooKeeperSettings(settings);
  if (!usable) throw usable.error();
  zk::WireOptions options;
  for (const config::ZooKeeperServer& server : settings.servers) {
    options.servers.push_back({server.host, server.port});
  }
  options.chroot = settings.chroot;
  options.session_timeout = settings.timeout;
  // The server's first start makes the file; clients may wait for that.
  if (!settings.client_secret_file.empty())
    options.find_digest = [file = settings.client_secret_file] { return ClientCredentials(file); };
  if (settings.tls) options.tls = zk::TlsFiles{settings.tls->cert, settings.tls->key, settings.tls->ca};
  return options;
}

config::ZooKeeperSettings EffectiveZooKeeper(config::ZooKeeperSettings settings) {
  if (!settings.servers.empty()) return settings;
  settings.servers.push_back({"127.0.0.1", settings.embedded.port});
  settings.tls.reset();
  settings.client_secret_file = ClientSecretFile(settings.embedded);
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

Error RefusedForGood(const std::string& servers) {
  return Error(Verdict::kFail,
               fmt::format("ZooKeeper at {} does not take what this program shows: the embedded server needs "
                           "the secret in zookeeper.secret of its state-dir, which its user can read",
                           servers));
}

Task<> CheckAdmission(zk::Client& client, std::string servers) {
  std::string root = "/";
  Outcome<zk::Result<zk::Stat>> answer = co_await Attempt(client.Exists(root));
  bool is_refused = client.state() == zk::SessionState::kClosed || FailedWith(answer, Verdict::kFail);
  if (is_refused) throw RefusedForGood(servers);
}

Task<> AwaitConnection(Loop& loop, zk::Client& client, std::string servers) {
  log::Logger logger("nodepool.zk.ZooKeeperClient");
  Event changed;
  Subscription watch = client.OnSession([&changed](zk::SessionState) { changed.Set(); });
  Duration pause = std::chrono::seconds(3);  // before the next warning
  while (client.state() != zk::SessionState::kConnected) {
    if (client.state() == zk::SessionState::kClosed) {
      throw RefusedForGood(servers);
    }
    changed.Reset();
    SteadyTime deadline = loop.SteadyNow() + pause;
    bool has_changed = co_await EndsBy(loop, deadline, "a connection to ZooKeeper", changed.Wait());
    if (has_changed) continue;
    logger.Warning("Retrying zookeeper connection: no answer from {} yet", servers);
    pause = std::chrono::seconds(10);
  }
  co_await CheckAdmission(client, std::move(servers));
}

Task<> CheckPlaceOfRecords(Loop& loop, Random& random, const config::ZooKeeperSettings& settings) {
  if (settings.python_chroot.empty()) co_return;
  zk::WireOptions options = ConnectionOptions(settings);
  options.chroot = settings.python_chroot;
  zk::WireClient client(loop, random, options);
  auto close = [&client] { return client.Close(); };
  bool has_records = co_await WithCleanup(HasRecords(loop, client, ServerNames(settings)), close);
  if (!has_records) co_return;
  throw Error(
      Verdict::kInvalid,
      fmt::format("with these zookeeper-servers the Python implementation has its records at {0}{1}, "
                  "while they belong at {2}{1}: stop everything that works with them, and move them by "
                  "`nodepool migrate to-chroot`",
                  settings.python_chroot, store::kWholeTree, settings.chroot));
}

}  // namespace nodepool::daemon
