#include "zk/server/connection.h"

namespace nodepool::zk::server {

bool Connection::Send(std::string_view frames, std::uint64_t change, std::uint64_t durable) {
  if (held_.empty() && change <= durable) {
    wire_->out().append(frames);
    wire_->Flush();
    return false;
  }
  if (held_.empty() || held_.back().change != change) held_.push_back({change, ""});
  held_.back().frames.append(frames);
  held_bytes_ += frames.size();
  return true;
}

void Connection::Release(std::uint64_t durable) {
  while (!held_.empty() && held_.front().change <= durable) {
    held_bytes_ -= held_.front().frames.size();
    wire_->out().append(held_.front().frames);
    held_.pop_front();
  }
  wire_->Flush();
  if (held_.empty()) released_.NotifyAll();
}

Task<> Connection::WaitUntilSent() {
  while (!held_.empty()) co_await released_.Wait();
  co_await wire_->WaitUntilSent();
}

}  // namespace nodepool::zk::server
