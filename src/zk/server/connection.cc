#include "zk/server/connection.h"

namespace nodepool::zk::server {

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

}  // namespace nodepool::zk::server
