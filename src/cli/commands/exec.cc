#include "cli/commands/exec.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "async/blocking_pool.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "net/http/curl.h"
#include "net/http/http_client.h"

namespace nodepool::cli {

namespace {

constexpr std::size_t kMaxToken = 1'000;

// nullopt: the file cannot be read.
std::optional<std::string> BeginOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxToken + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool IsToken(std::string_view text) {
  auto is_visible = [](char letter) { return letter > ' ' && letter <= '~'; };
  return text.size() <= kMaxToken && text.find('.') != std::string_view::npos &&
         std::ranges::all_of(text, is_visible);
}

}  // namespace

std::string FaultOfServer(const std::string& text) {
  std::optional<net::Url> url = net::Url::Parse(text);
  bool is_http = url && (url->scheme() == "http" || url->scheme() == "https");
  if (!is_http || url->host().empty()) return "it is not an address such as https://nodepool.example.org";
  std::string whole = url->text();
  url->RemoveSecrets();
  return url->text() == whole ? "" : "an address without user, query and fragment is needed";
}

Expected<ServerAccess> AccessOf(const ServerOptions& options) {
  ServerAccess access{options.url, "", options.ca_path};
  while (access.url.ends_with('/')) access.url.pop_back();
  std::string place = kTokenVariable;
  if (options.token_file) {
    place = *options.token_file;
    std::optional<std::string> text = BeginOf(place);
    if (!text) return Unexpected(Verdict::kInvalid, fmt::format("{} cannot be read", place));
    access.token = Trim(*text);
  } else if (const char* value = std::getenv(kTokenVariable)) {
    access.token = Trim(value);
  }
  if (access.token.empty())
    return Unexpected(Verdict::kInvalid,
                      fmt::format("{} has no token; set ${} or give --token-file", place, kTokenVariable));
  if (!IsToken(access.token))
    return Unexpected(Verdict::kInvalid, fmt::format("What is in {} is no token: NAME.SECRET", place));
  return access;
}

Task<int> ExecByServer(Console& console, ServerOptions server, ExecOptions options) {
  Expected<ServerAccess> access = AccessOf(server);
  if (!access) {
    console.logger.Error("{}", access.error().message());
    co_return kExecFailed;
  }
  BlockingPool pool;
  net::CurlClient http(console.loop, pool, fmt::format("nodepool/{}", Version()));
  LeaseClient client(http, *access);
  LeaseClaim claim(console, client, options.wish, server.times);
  int status = co_await ExecOn(console, claim, options);
  co_return status;
}

namespace {

struct ExecValues {
  WishArguments wish;
  ExecOptions options;
  ServerOptions server;
  std::string lease;
};

constexpr Duration kShortestLease = std::chrono::seconds(30);
constexpr Duration kLongestLease = std::chrono::hours(24);
constexpr Duration kLongestWait = 365 * std::chrono::hours(24);

void AddLoginOptions(CLI::App& command, net::LoginOptions& login) {
  command.add_option("-i,--identity", login.identity, "log in with this private key")
      ->envname("NODEPOOL_IDENTITY")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command.add_flag("--any-host-key", login.accepts_any_key,
                   "log in to nodes whose record has no host keys, too");
}

void AddServerOptions(CLI::App& command, ExecValues& values) {
  CLI::Option* server =
      command
          .add_option("--server", values.server.url,
                      "ask this server over HTTP, without ZooKeeper and configuration; the token is in "
                      "$NODEPOOL_TOKEN")
          ->check(&FaultOfServer)
          ->type_name("URL");
  command.add_option("--token-file", values.server.token_file, "file that holds the token")
      ->check(CLI::ExistingFile)
      ->needs(server)
      ->type_name("FILE");
  command
      .add_option("--ca", values.server.ca_path,
                  "certificates that sign the server's, in place of the system's")
      ->check(CLI::ExistingFile)
      ->needs(server)
      ->type_name("FILE");
  command
      .add_option("--lease", values.lease, "how long the nodes are ours without a word from here, 30s to 24h")
      ->needs(server)
      ->default_str("5m")
      ->type_name("TIME");
}

ServerOptions ServerOf(const ExecValues& values) {
  ServerOptions server = values.server;
  if (values.lease.empty()) return server;
  Expected<Duration> lease = ParseDuration(values.lease);
  if (!lease) throw CLI::ValidationError("--lease", lease.error().message());
  if (*lease < kShortestLease || *lease > kLongestLease)
    throw CLI::ValidationError("--lease", "it must be from 30s to 24h");
  server.times.lease = *lease;
  return server;
}

std::string FaultOfInventory(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  bool is_known = extension == ".yaml" || extension == ".yml" || extension == ".json";
  return is_known ? "" : "its name must end in .yaml, .yml or .json, else Ansible does not read it";
}

ExecOptions OptionsOf(const ExecValues& values) {
  ExecOptions options = values.options;
  options.wish = values.wish.ToWish();
  if (options.login.identity)
    options.login.identity = std::filesystem::absolute(*options.login.identity).string();
  return options;
}

void SetCommand(Invocation& invocation, const ExecValues& values) {
  if (values.server.url.empty()) {
    invocation.command = [options = OptionsOf(values)](Context& context) { return Exec(context, options); };
    return;
  }
  invocation.server_command = [options = OptionsOf(values), server = ServerOf(values)](
                                  Console& console, std::optional<Duration> wait) {
    ServerOptions with_wait = server;
    if (wait) with_wait.times.first_answer = std::min(*wait, kLongestWait);
    return ExecByServer(console, std::move(with_wait), options);
  };
}

}  // namespace

void RegisterExec(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<ExecValues>();
  ExecOptions& options = values->options;
  CLI::App* command = app.add_subcommand("exec", "run a command on nodes that are asked for and given back");
  command
      ->add_option(
          "LABEL", values->wish.labels,
          "labels of the nodes, one for each; then -- and the command: one word is a line for the shell, "
          "several are a program and its arguments")
      ->required()
      ->type_name("");
  AddLoginOptions(*command, options.login);
  command
      ->add_option("--sync", options.sync,
                   "copy this folder to the node by rsync, and run the command in the copy")
      ->expected(0, 1)
      ->default_str(".")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  command
      ->add_option("--fetch", options.fetch,
                   "copy this file or folder from the node afterwards; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATH");
  command->add_option("--inventory", options.inventory, "write an Ansible inventory of the nodes")
      ->check(FaultOfInventory)
      ->type_name("FILE");
  command->add_flag(
      "--local", options.runs_here,
      "run the command here, with $NODEPOOL_NODES, $NODEPOOL_SSH_CONFIG and $NODEPOOL_INVENTORY");
  AddWishOptions(*command, values->wish);
  AddServerOptions(*command, *values);
  command->callback([&invocation, values] {
    if (invocation.words_to_run.empty()) throw CLI::RequiredError("-- and a command");
    values->options.command = invocation.words_to_run;
    SetCommand(invocation, *values);
  });
}

void RegisterSsh(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<ExecValues>();
  values->wish.labels.resize(1);
  values->options.login.may_ask = true;
  CLI::App* command =
      app.add_subcommand("ssh", "log in to a node that is asked for, and given back afterwards");
  command->add_option("LABEL", values->wish.labels.front(), "label of the node")->required()->type_name("");
  AddLoginOptions(*command, values->options.login);
  AddWishOptions(*command, values->wish);
  AddServerOptions(*command, *values);
  command->callback([&invocation, values] { SetCommand(invocation, *values); });
}

}  // namespace nodepool::cli
