#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "base/ids.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "daemon/connection.h"
#include "daemon/runtime.h"
#include "store/whole_tree.h"
#include "zk/recipes/copy_tree.h"
#include "zk/server/server.h"
#include "zk/wire/wire_client.h"

namespace nodepool::cli {

namespace {

using zk::TreeContent;

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // the limit of the embedded server
constexpr Duration kConnectTimeout = std::chrono::seconds(10);

// A connection to the store of the embedded server.
class EmbeddedStore {
 public:
  EmbeddedStore(Loop& loop, const config::ZooKeeperSettings& settings) : loop_(loop), settings_(settings) {}

  // If `nodepool standalone` has the store open: connects to its server if it `may_run`, else
  // Error(kConflict). Error(kInvalid): the store cannot be used.
  Task<> Open(bool may_run) {
    zk::server::ServerOptions options = daemon::EmbeddedServerOptions(settings_.embedded);
    options.port = 0;
    options.tls.reset();
    options.tls_port = -1;
    // Jobs may be able to connect to it.
    options.own_password = zk::server::NewPassword();
    options.client_secret = zk::server::NewPassword();
    zk::WireOptions wire;
    wire.session_timeout = settings_.timeout;
    server_.emplace(loop_, disk_, options);
    Outcome<> started = co_await Attempt(server_->Start());
    bool is_in_use = FailedWith(started, Verdict::kConflict);
    if (!started && !is_in_use) started.error().Rethrow();
    if (is_in_use && !may_run) {
      throw Error(Verdict::kConflict, fmt::format("nodepool standalone runs with {}: stop it first",
                                                  settings_.embedded.state_dir));
    }
    wire.opening_password = options.own_password;
    wire.digest = daemon::ClientCredentials(daemon::ClientSecretFile(settings_.embedded));
    wire.servers = {{"127.0.0.1", is_in_use ? settings_.embedded.port : server_->port()}};
    client_.emplace(loop_, random_, wire);
    SteadyTime deadline = loop_.SteadyNow() + kConnectTimeout;
    co_await WithDeadline(
        loop_, deadline, "connecting to the embedded server",
        daemon::AwaitConnection(loop_, *client_, fmt::format("port {}", wire.servers[0].port)));
  }

  zk::Client& client() { return *client_; }

  Task<> Close() {
    if (client_) co_await client_->Close();
    if (server_) co_await server_->Stop();
  }

 private:
  Loop& loop_;
  const config::ZooKeeperSettings& settings_;
  SystemRandom random_;
  BlockingPool disk_{1};
  std::optional<zk::server::Server> server_;
  std::optional<zk::WireClient> client_;
};

struct Side {
  zk::Client& client;
  std::string name;
};

Task<> AwaitGone(zk::Client& client, std::string path) {
  Event changed;
  zk::Watcher watcher = [&changed](const zk::WatchEvent&) { changed.Set(); };
  Subscription watch = co_await client.AddWatch(path, zk::WatchMode::kPersistent, std::move(watcher));
  while (true) {
    changed.Reset();
    zk::Result<zk::Stat> found = co_await client.Exists(path);
    if (!found) co_return;
    co_await changed.Wait();
  }
}

struct Migration {
  Context& context;
  MigrateOptions options;
  std::string root;
};

// The content of one side. Ephemeral znodes show that a program is connected; those of a killed process
// vanish when its session has expired, and Read waits for that.
Task<TreeContent> Read(Migration& migration, Side side) {
  Loop& loop = migration.context.loop;
  SteadyTime deadline = loop.SteadyNow() + 2 * migration.context.config->common.zookeeper.timeout;
  while (true) {
    TreeContent content = co_await zk::ReadTree(side.client, migration.root, kMaxBytes);
    bool is_quiet = content.ephemerals.empty() || migration.options.is_forced || migration.options.is_dry_run;
    if (is_quiet) co_return content;
    std::string path = content.ephemerals.front();
    migration.context.logger.Info("{} has {} of a session that is open: waiting for its end", side.name,
                                  path);
    bool is_gone = co_await EndsBy(loop, deadline, "the end of a session", AwaitGone(side.client, path));
    if (is_gone) continue;
    throw Error(
        Verdict::kConflict,
        fmt::format("a client is at work in {}: {} belongs to a session that is open; stop launchers, "
                    "builders and clients, or use --force",
                    side.name, path));
  }
}

// "2 nodes, 0 requests, 1 image"
std::string RecordText(const TreeContent& content) {
  store::RecordCounts counts;
  for (const auto& [path, znode] : content.znodes) counts.Add(path);
  return fmt::format("{}, {}, {}", Counted(counts.nodes, "node"), Counted(counts.requests, "request"),
                     Counted(counts.images.size(), "image"));
}

void Tell(Migration& migration, const Side& side, const TreeContent& content) {
  std::ostream& out = migration.context.out;
  fmt::print(out, "{}: {} ({} znodes, {:.1f} MB)\n", side.name, RecordText(content), content.znodes.size(),
             static_cast<double>(content.bytes) / 1e6);
  if (!content.ephemerals.empty()) {
    fmt::print(out, "  {} of open sessions are not taken along, e.g. {}\n", content.ephemerals.size(),
               content.ephemerals.front());
  }
}

Task<> Copy(Migration& migration, Side from, Side to) {
  TreeContent content = co_await Read(migration, from);
  Tell(migration, from, content);
  // Otherwise --replace would delete the existing records.
  if (content.znodes.empty())
    throw Error(Verdict::kInvalid, fmt::format("there is nothing in {} to copy", from.name));
  fmt::print(migration.context.out, "  {} sequence numbers are used up in the copy\n",
             content.missing_numbers());
  TreeContent present = co_await Read(migration, to);
  Tell(migration, to, present);
  if (!present.znodes.empty() && !migration.options.replaces) {
    throw Error(Verdict::kConflict,
                fmt::format("{} has records already; --replace deletes them first", to.name));
  }
  if (migration.options.is_dry_run) co_return;
  if (!present.znodes.empty()) co_await zk::DeleteTree(to.client, present);
  co_await zk::WriteTree(to.client, content);
  TreeContent original = co_await zk::ReadTree(from.client, migration.root, kMaxBytes);
  TreeContent copy = co_await zk::ReadTree(to.client, migration.root, kMaxBytes);
  std::string difference = zk::FirstDifference(original, copy);
  if (!difference.empty()) {
    throw Error(Verdict::kFail,
                fmt::format("something changed meanwhile, do it again with --replace: {}", difference));
  }
  fmt::print(migration.context.out, "{} has all of it now: {}\n", to.name, RecordText(copy));
  if (migration.options.to == MigrateTo::kChroot) co_await zk::DeleteTree(from.client, original);
}

Task<> CopyBetween(Migration& migration, EmbeddedStore& store) {
  Context& context = migration.context;
  const config::ZooKeeperSettings& settings = context.config->common.zookeeper;
  bool may_run = migration.options.is_dry_run || migration.options.is_forced;
  co_await store.Open(may_run);
  Side embedded{store.client(), settings.embedded.state_dir};
  Side ensemble{context.store.tree.client(), daemon::ServerNames(settings)};
  bool is_to_ensemble = migration.options.to == MigrateTo::kEnsemble;
  const Side& from = is_to_ensemble ? embedded : ensemble;
  const Side& to = is_to_ensemble ? ensemble : embedded;
  co_await Copy(migration, from, to);
}

Task<> BetweenServers(Migration& migration) {
  Context& context = migration.context;
  const config::ZooKeeperSettings& settings = context.config->common.zookeeper;
  bool is_to_ensemble = migration.options.to == MigrateTo::kEnsemble;
  if (is_to_ensemble && !std::filesystem::exists(daemon::EmbeddedServerOptions(settings.embedded).journal)) {
    throw Error(Verdict::kInvalid,
                fmt::format("the embedded server has nothing in {}", settings.embedded.state_dir));
  }
  EmbeddedStore store(context.loop, settings);
  auto close = [&store] { return store.Close(); };
  co_await WithCleanup(CopyBetween(migration, store), close);
}

Task<> MoveToChroot(Migration& migration, zk::Client& client) {
  Context& context = migration.context;
  const config::ZooKeeperSettings& settings = context.config->common.zookeeper;
  co_await daemon::AwaitConnection(context.loop, client, daemon::ServerNames(settings));
  Side from{client, settings.python_chroot};
  Side to{context.store.tree.client(), settings.chroot};
  co_await Copy(migration, from, to);
}

Task<> ToChroot(Migration& migration) {
  Context& context = migration.context;
  const config::ZooKeeperSettings& settings = context.config->common.zookeeper;
  if (settings.python_chroot.empty()) {
    throw Error(Verdict::kInvalid,
                "there is nothing to move: with these zookeeper-servers the Python implementation has its "
                "records at the same place");
  }
  SystemRandom random;
  zk::WireOptions options = daemon::ConnectionOptions(settings);
  options.chroot = settings.python_chroot;
  zk::WireClient client(context.loop, random, options);
  auto close = [&client] { return client.Close(); };
  co_await WithCleanup(MoveToChroot(migration, client), close);
}

}  // namespace

Task<int> Migrate(Context& context, MigrateOptions options) {
  Migration migration{context, options, options.takes_everything ? "/" : std::string(store::kWholeTree)};
  if (options.to == MigrateTo::kChroot) {
    co_await ToChroot(migration);
  } else {
    co_await BetweenServers(migration);
  }
  co_return 0;
}

void RegisterMigrate(CLI::App& app, Invocation& invocation) {
  static const std::map<std::string, MigrateTo> directions = {{"to-ensemble", MigrateTo::kEnsemble},
                                                              {"to-embedded", MigrateTo::kEmbedded},
                                                              {"to-chroot", MigrateTo::kChroot}};
  struct Values {
    std::string direction;
    MigrateOptions options;
  };
  auto values = std::make_shared<Values>();
  MigrateOptions& options = values->options;
  CLI::App* command = app.add_subcommand("migrate",
                                         "copy the records between the embedded server and "
                                         "zookeeper-servers, or move them to the chroot");
  command
      ->add_option("DIRECTION", values->direction,
                   "to-ensemble, to-embedded, or to-chroot: from where the Python implementation has them")
      ->required()
      ->check(CLI::IsMember({"to-ensemble", "to-embedded", "to-chroot"}))
      ->type_name("");
  command->add_flag("--dry-run", options.is_dry_run, "only list what there is to copy");
  command->add_flag("--all", options.takes_everything,
                    "also what other programs keep beside Nodepool's records");
  command->add_flag("--force", options.is_forced,
                    "proceed even if launchers, builders or clients are connected");
  command->add_flag("--replace", options.replaces, "delete what the other side has, first");
  command->callback([&invocation, values] {
    values->options.to = directions.at(values->direction);
    invocation.needs_ensemble = true;
    invocation.command = [values](Context& context) { return Migrate(context, values->options); };
  });
}

// The program handles this command before it uses this parser.
void RegisterStandalone(CLI::App& app, Invocation&) {
  app.add_subcommand("standalone", "run everything in one process, see nodepool standalone --help");
}

}  // namespace nodepool::cli
