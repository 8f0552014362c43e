#include "zk/server/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace nodepool::zk::server {
namespace {

constexpr std::size_t kLongestDump = 1 << 20;

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// The version that clients see; the protocol is that of this version.
constexpr std::string_view kVersion = "3.8.0-embedded";

std::string Summary(const Engine& engine, const Traffic& traffic) {
  return fmt::format(
      "Zookeeper version: {}, built into nodepool\nReceived: {}\nSent: {}\nConnections: {}\nOutstanding: 0\n"
      "Zxid: 0x{:x}\nMode: standalone\nNode count: {}\n",
      kVersion, traffic.received, traffic.sent, traffic.connections, engine.tree().last_zxid(),
      engine.tree().size());
}

std::string Monitoring(const Engine& engine, const Traffic& traffic) {
  std::string text =
      fmt::format("zk_version\t{}, built into nodepool\nzk_server_state\tstandalone\n", kVersion);
  auto add = [&text](std::string_view name, auto value) { text += fmt::format("zk_{}\t{}\n", name, value); };
  add("num_alive_connections", traffic.connections);
  add("packets_received", traffic.received);
  add("packets_sent", traffic.sent);
  add("outstanding_requests", 0);
  add("znode_count", engine.tree().size());
  add("watch_count", engine.watches().size());
  add("ephemerals_count", engine.tree().ephemeral_count());
  add("approximate_data_size", engine.tree().bytes());
  add("global_sessions", engine.sessions().size());
  add("commit_count", traffic.commits);
  return text;
}

std::string Dump(const Engine& engine) {
  std::string text = fmt::format("Session Sets ({}):\n", engine.sessions().size());
  std::string ephemerals;
  for (const auto& [id, session] : engine.sessions()) {
    std::string name = fmt::format("0x{:x}", static_cast<std::uint64_t>(id));
    text += fmt::format("\t{}\n", name);
    const std::set<std::string>& paths = engine.tree().Ephemerals(id);
    if (paths.empty()) continue;
    ephemerals += name + ":\n";
    for (const std::string& path : paths) {
      ephemerals += "\t" + path + "\n";
      if (ephemerals.size() > kLongestDump)
        return text + "ephemeral nodes dump, the beginning:\n" + ephemerals;
    }
  }
  return text + "ephemeral nodes dump:\n" + ephemerals;
}

}  // namespace

std::optional<std::string> AnswerWord(std::string_view word, const Engine& engine, const Traffic& traffic,
                                      bool is_stranger) {
  if (word == "ruok") return "imok";
  if (word == "isro") return "rw";
  if (is_stranger && IsOneOf(word, {"srvr", "stat", "mntr", "dump"}))
    return fmt::format("{} is answered over TLS only: this server needs a secret\n", word);
  if (word == "srvr" || word == "stat") return Summary(engine, traffic);
  if (word == "mntr") return Monitoring(engine, traffic);
  if (word == "dump") return Dump(engine);
  return std::nullopt;
}

}  // namespace nodepool::zk::server
