#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zk/server/engine.h"

namespace nodepool::zk::server {

// What the four-letter words report besides the engine's own numbers.
struct Traffic {
  std::size_t connections = 0;
  std::uint64_t received = 0;  // frames
  std::uint64_t sent = 0;      // answers and events
  std::uint64_t commits = 0;   // transactions of the journal
};

// The answer to ruok, srvr, stat, mntr, dump and isro; nullopt for anything else. A stranger, who would have
// to show a secret for a session, gets to know nothing by them.
std::optional<std::string> AnswerWord(std::string_view word, const Engine& engine, const Traffic& traffic,
                                      bool is_stranger);

}  // namespace nodepool::zk::server
