#pragma once

#include <map>
#include <memory>
#include <string>

#include "async/gate.h"
#include "async/log_throttle.h"
#include "net/http/connection.h"
#include "net/http/server_certificate.h"

namespace nodepool::net {

// Begins TLS on a web server's connections (http-tls.md 3). A client that sends plain HTTP is answered that
// it has to use https. Handshakes begin at intervals that depend on the key, so that all of them together
// leave most of the loop's time to others, however many clients there are.
class TlsAcceptor {
 public:
  // Loads the certificate, as ServerCertificate does. `loop` outlives it.
  TlsAcceptor(Loop& loop, CertificateFiles files, std::string setting, log::Logger logger);

  // Waits for the client's first record, and for its turn; networks take turns. False: the connection is of
  // no use; close it. The caller bounds the time by closing the connection.
  Task<bool> Begin(Connection& connection, std::string network);

  // Follows the certificate's files until it is cancelled.
  Task<> Follow() { return certificate_.Follow(); }

 private:
  // The first of those that wait of each network waits for a turn of all.
  Task<bool> AwaitTurn(Connection& connection, std::string network);
  Task<bool> AwaitTurnOfAll(Connection& connection);
  void ReportFailure(const Connection& connection, const boost::system::error_code& error);

  Loop& loop_;
  log::Logger logger_;
  ServerCertificate certificate_;
  LogThrottle failures_;
  std::map<std::string, std::weak_ptr<Gate>> networks_;  // of which a client waits
  Gate turns_{1};
  SteadyTime next_turn_{};  // when the next handshake may begin
};

// Whether a client that begins with this byte speaks TLS; no request of HTTP begins with it.
constexpr bool IsTlsByte(char first) { return first == '\x16'; }

}  // namespace nodepool::net
