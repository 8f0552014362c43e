#include "zk/server/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace nodepool::zk::server {

namespace {

// A check that comes later than this follows a time in which no message was read.
constexpr Duration kLate = std::chrono::seconds(1);

}  // namespace

SessionClock::~SessionClock() {
  for (auto& [session, timed] : timed_) loop_.clock().CancelTimer(timed.timer);
}

void SessionClock::Start(std::int64_t session, Duration timeout) {
  Stop(session);
  Timed& timed = timed_[session];
  timed.timeout = timeout;
  timed.heard = loop_.SteadyNow();
  Arm(session, timed);
}

void SessionClock::Heard(std::int64_t session) {
  auto found = timed_.find(session);
  if (found != timed_.end()) found->second.heard = loop_.SteadyNow();
}

void SessionClock::Stop(std::int64_t session) {
  auto found = timed_.find(session);
  if (found == timed_.end()) return;
  loop_.clock().CancelTimer(found->second.timer);
  timed_.erase(found);
}

void SessionClock::Arm(std::int64_t session, Timed& timed) {
  timed.timer = loop_.clock().CallAt(timed.heard + timed.timeout, [this, session] { Check(session); });
}

void SessionClock::Check(std::int64_t session) {
  auto found = timed_.find(session);
  Timed& timed = found->second;
  Duration late = loop_.SteadyNow() - (timed.heard + timed.timeout);
  if (late > kLate) timed.heard = loop_.SteadyNow();
  if (late < Duration(0) || late > kLate) return Arm(session, timed);
  timed_.erase(found);
  expire_(session);
}

namespace {

// Without a copy where that is possible.
void Append(std::string& out, std::string frames) {
  if (out.empty() && frames.size() > out.capacity()) {
    out = std::move(frames);
  } else {
    out.append(frames);
  }
}

}  // namespace

bool Connection::Send(std::string frames, std::uint64_t change, std::uint64_t durable) {
  if (wire_->is_closed()) return false;
  if (held_.empty() && change <= durable) {
    Append(wire_->out(), std::move(frames));
    wire_->Flush();
    return false;
  }
  if (held_.empty() || held_.back().change != change) held_.push_back({change, ""});
  held_bytes_ += frames.size();
  Append(held_.back().frames, std::move(frames));
  return true;
}

void Connection::Release(std::uint64_t durable) {
  while (!held_.empty() && held_.front().change <= durable) {
    held_bytes_ -= held_.front().frames.size();
    Append(wire_->out(), std::move(held_.front().frames));
    held_.pop_front();
  }
  wire_->Flush();
  if (held_.empty()) released_.NotifyAll();
}

void Connection::Close(std::string reason) {
  wire_->Close(std::move(reason));
  held_.clear();
  held_bytes_ = 0;
  released_.NotifyAll();
}

Task<> Connection::WaitUntilSent() {
  while (!held_.empty()) co_await released_.Wait();
  co_await wire_->WaitUntilSent();
}

namespace {

constexpr Duration kTurn = std::chrono::milliseconds(5);

}  // namespace

bool Turn::Covers(bool is_long) {
  bool is_first = std::exchange(is_first_, false);
  return (is_first && !is_long) || (ends_ && loop_.SteadyNow() < *ends_);
}

void Turn::End() {
  ends_.reset();
  pass_ = {};
}

Task<> Turn::Begin() {
  End();
  pass_ = co_await gate_.Enter();
  co_await loop_.GiveWay();
  ends_ = loop_.SteadyNow() + kTurn;
}

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
