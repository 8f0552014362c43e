#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "config/config.h"

namespace nodepool::cli {

namespace {

// What a new token allows (http-requests.md 2.1).
struct TokenOptions {
  std::string name;
  std::vector<std::string> scopes;
  std::optional<std::int64_t> max_nodes;
  std::vector<std::string> labels;
  std::optional<std::int64_t> priority;
  std::optional<std::string> tenant;
};

// As a YAML scalar in single quotes, in which every character but the quote stands for itself.
std::string YamlText(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string YamlList(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(YamlText(word));
  return fmt::format("[{}]", Join(quoted, ", "));
}

std::string RefuseBadName(const std::string& name) {
  return config::IsTokenName(name) ? ""
                                   : "it has other characters than letters, digits, underscores and dashes, "
                                     "or more than 64 of them";
}

// The entry as YAML.
std::string TokenEntry(const TokenOptions& options, const std::string& hash) {
  std::string entry = fmt::format("webapp-tokens:\n  - name: {}\n    hash: {}\n    scopes: [{}]\n",
                                  YamlText(options.name), YamlText(hash), Join(options.scopes, ", "));
  if (options.max_nodes) entry += fmt::format("    max-nodes: {}\n", *options.max_nodes);
  if (!options.labels.empty()) entry += fmt::format("    labels: {}\n", YamlList(options.labels));
  if (options.priority) entry += fmt::format("    priority: {}\n", *options.priority);
  if (options.tenant) entry += fmt::format("    tenant: {}\n", YamlText(*options.tenant));
  return entry;
}

// Prints a new token, whose secret is nowhere else, and its entry for the secure file. Returns the exit
// status.
int MakeToken(const TokenOptions& options, std::ostream& out) {
  std::string secret = RandomSecret();
  out << fmt::format("The token, which is not shown again:\n\n{}.{}\n\nIts entry in the secure file:\n\n{}",
                     options.name, secret, TokenEntry(options, HashRandomSecret(secret)))
      << std::flush;
  return 0;
}

}  // namespace

void RegisterToken(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App* command = app.add_subcommand("token", "make a token for requests over HTTP");
  command->add_option("NAME", options->name, "its name")->required()->check(&RefuseBadName)->type_name("");
  command->add_option("--scope", options->scopes, "what it allows: read, request or operate; may be repeated")
      ->check(CLI::IsMember({"read", "request", "operate"}))
      ->type_name("SCOPE");
  command->add_option("--max-nodes", options->max_nodes, "how many nodes it may have at a time")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command
      ->add_option("--label", options->labels, "a label that it may ask for, * for any text; may be repeated")
      ->type_name("LABEL");
  command->add_option("--priority", options->priority, "the least number that it may ask for as priority")
      ->check(CLI::Range(0, 999))
      ->type_name("N");
  command->add_option("--tenant", options->tenant, "tenant of all its requests")->type_name("TENANT");
  command->callback([&invocation, options] {
    if (options->scopes.empty()) options->scopes = {"request"};
    invocation.offline_command = [options](const driver::LoadedConfig&, std::ostream& out) {
      return MakeToken(*options, out);
    };
  });
}

}  // namespace nodepool::cli
