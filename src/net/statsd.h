#pragma once

#include <boost/asio/ip/udp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "async/loop.h"
#include "base/metrics.h"

namespace nodepool::net {

struct StatsdAddress {
  std::string host;
  std::string port;
  bool operator==(const StatsdAddress&) const = default;
};

// The address for metrics from STATSD_HOST and STATSD_PORT, either of which may be null; nullopt
// when neither is set (launcher.md 27.1).
std::optional<StatsdAddress> StatsdFromEnvironment(const char* host, const char* port);

// Sends metrics to a statsd server over UDP. Lines are collected until the loop's next turn, or
// until a packet is full; what cannot be sent at once is lost. (launcher.md 27.1)
class Statsd final : public metrics::Sink {
 public:
  // A packet is shorter than this, unless a single line is longer.
  static constexpr std::size_t kPacketLimit = 512;

  // Resolves the host, once and blocking, for program start. Error(kInvalid) when
  // there is no IPv4 address by that name.
  Statsd(Loop& loop, const StatsdAddress& address);
  ~Statsd() override;

  void Set(const metrics::Metric& gauge, const metrics::LabelValues& labels, double value) override;
  void Add(const metrics::Metric& counter, const metrics::LabelValues& labels, std::int64_t by = 1) override;
  void Observe(const metrics::Metric& timing, const metrics::LabelValues& labels, Duration took) override;

  // Sends the collected lines.
  void Flush();

 private:
  void AddLine(std::string_view line);

  Loop& loop_;
  boost::asio::ip::udp::socket socket_;
  std::string packet_;
  // Lives as long as this; a posted flush holds it weakly.
  std::shared_ptr<Statsd*> self_ = std::make_shared<Statsd*>(this);
};

}  // namespace nodepool::net
