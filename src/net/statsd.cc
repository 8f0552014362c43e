#include "net/statsd.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include "base/error.h"

namespace nodepool::net {
namespace {

using boost::asio::ip::udp;

std::string KeyFor(const metrics::Metric& metric, const metrics::LabelValues& labels) {
  return metrics::KeyOf(metric, metrics::Normalised(metric, labels));
}

}  // namespace

std::optional<StatsdAddress> StatsdFromEnvironment(const char* host, const char* port) {
  bool has_host = host != nullptr && *host != '\0';
  bool has_port = port != nullptr && *port != '\0';
  if (!has_host && !has_port) return std::nullopt;
  return StatsdAddress{has_host ? host : "localhost", has_port ? port : "8125"};
}

Statsd::Statsd(Loop& loop, const StatsdAddress& address) : loop_(loop), socket_(loop.context()) {
  udp::resolver resolver(loop.context());
  boost::system::error_code error;
  auto found = resolver.resolve(udp::v4(), address.host, address.port, error);
  if (error || found.empty()) {
    throw Error(Verdict::kInvalid,
                fmt::format("the statsd server {}:{} (STATSD_HOST, STATSD_PORT) cannot be used: {}",
                            address.host, address.port, error.message()));
  }
  socket_.open(udp::v4());
  socket_.non_blocking(true);
  socket_.connect(found.begin()->endpoint());
}

Statsd::~Statsd() { Flush(); }

void Statsd::Set(const metrics::Metric& gauge, const metrics::LabelValues& labels, double value) {
  std::string key = KeyFor(gauge, labels);
  // A sign means "change by", so a negative value is set by way of 0.
  if (value < 0) AddLine(fmt::format("{}:0|g", key));
  AddLine(fmt::format("{}:{}|g", key, value));
}

void Statsd::Add(const metrics::Metric& counter, const metrics::LabelValues& labels, std::int64_t by) {
  AddLine(fmt::format("{}:{}|c", KeyFor(counter, labels), by));
}

void Statsd::Observe(const metrics::Metric& timing, const metrics::LabelValues& labels, Duration took) {
  auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  AddLine(fmt::format("{}:{}.000000|ms", KeyFor(timing, labels), milliseconds));
}

void Statsd::AddLine(std::string_view line) {
  if (!packet_.empty() && packet_.size() + 1 + line.size() >= kPacketLimit) Flush();
  if (!packet_.empty()) {
    packet_ += '\n';
    packet_ += line;
    return;
  }
  packet_ = line;
  auto flush = [weak = std::weak_ptr<Statsd*>(self_)] {
    if (std::shared_ptr<Statsd*> self = weak.lock()) (*self)->Flush();
  };
  boost::asio::post(loop_.context(), std::move(flush));
}

void Statsd::Flush() {
  if (packet_.empty()) return;
  boost::system::error_code ignored;
  socket_.send(boost::asio::buffer(packet_), 0, ignored);
  packet_.clear();
}

}  // namespace nodepool::net
