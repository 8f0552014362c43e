#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "async/backoff.h"
#include "async/event.h"
#include "async/file_watch.h"
#include "async/loop.h"
#include "async/reconciler.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/tls_files.h"

namespace nodepool::net {

// The place of one connection at a server, and what decides whether it may keep it.
struct Seat {
  struct Party {
    std::size_t seats = 0;
  };

  std::string network;                    // of the peer
  std::string proven_as;                  // who the peer has proved to be; empty: a stranger
  SteadyTime since{};                     // when the peer last came, sent a request or took bytes
  bool awaits_peer = true;                // the next step is the peer's
  std::size_t held_bytes{};               // of a large answer that the peer has not taken
  std::function<void()> leave = nullptr;  // ends the connection; set by its owner
  Party* party = nullptr;                 // of Seats
};

// Who has the places for connections, and who loses his when all are taken (http.md 2.1). Strangers are told
// apart by network, the others by the name that they have proved; places of the others are beside those of
// strangers, and no stranger takes one away. The party with the most seats gives way, where it has more than
// a fair share; in it those whom we wait for, of these the one that has done nothing for the longest time.
class Seats {
 public:
  using Ptr = std::shared_ptr<Seat>;

  struct Limits {
    std::size_t strangers = 0;
    std::size_t proven = 0;
    std::size_t held_bytes = 0;  // of all
    std::size_t fair_share = 0;  // parties with so many seats or fewer count as equally large
    // Whether a newcomer may take the place of one of its own party; else it is refused where no other party
    // has more.
    bool replaces_own = true;
  };

  explicit Seats(Limits limits) : limits_(limits) {}
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  // A seat until the pointer is gone; null: there is none, which happens only where newcomers may not replace
  // their own. It outlives no Seats.
  Ptr Enter(std::string network, std::string proven_as, SteadyTime now);

  // The peer has proved who it is; an empty name: not any more. Where too many have, another one counts as a
  // stranger again.
  void Prove(Seat& seat, const std::string& name);

  // Whether so many bytes may be kept until the peer has taken them. They are kept from now on until
  // Release(). Strangers that have taken nothing for a second lose their places for it; for one who is no
  // stranger also those that have taken something since.
  bool Hold(Seat& seat, std::size_t bytes, SteadyTime now);
  void Release(Seat& seat);

  // Everybody leaves.
  void Clear();

  std::size_t strangers() const { return strangers_; }
  std::size_t proven() const { return seats_.size() - strangers_; }

 private:
  void Count(Seat& seat);
  void Uncount(Seat& seat);
  void Remove(Seat& seat);
  void SendAway(Seat& seat);
  // Who leaves first of those that may.
  template <class May>
  Seat* First(May may) const;
  bool GoesBefore(const Seat& one, const Seat& other) const;

  const Limits limits_;
  std::list<Seat*> seats_;
  std::map<std::string, Seat::Party> networks_;
  std::map<std::string, Seat::Party> names_;
  std::size_t strangers_ = 0;
  std::size_t held_bytes_ = 0;
};

// What a client can choose its addresses from: of an IPv6 address the first 64 bits, else all of it. Limits
// for a client count by it.
std::string NetworkOf(const std::string& address);

// A client's connection to a server, plain or with TLS: a stream as Asio's and Beast's operations expect it.
// It must outlive the operations in progress; with TLS one may read while another one writes.
class Connection {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  explicit Connection(Loop& loop) : socket_(loop.context()) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& socket() { return socket_; }
  // The client's, also if it came through IPv6; the unspecified one if it has gone.
  boost::asio::ip::address PeerAddress() const;
  bool is_open() const { return socket_.is_open(); }
  // Ends every operation in progress.
  void Close();

  // The server's part of the handshake; from then on everything is encrypted. `context` may be replaced
  // meanwhile and afterwards.
  Task<boost::system::error_code> BeginTls(boost::asio::ssl::context& context);

  // Announces that nothing more is sent. With TLS it waits a moment for the client's announcement.
  Task<> Finish(Loop& loop);

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  Socket socket_;
  // Beast's, which sends a head and its body as one record.
  std::optional<boost::beast::ssl_stream<Socket&>> tls_;
};

// While it lives, a deadline for all operations on the socket: when it passes, the socket is
// closed, which ends every operation in progress.
class HangUpLater {
 public:
  HangUpLater(Loop& loop, boost::asio::ip::tcp::socket& socket, Duration limit)
      : loop_(loop), timer_(loop.clock().CallAt(loop.SteadyNow() + limit, [&socket] {
          boost::system::error_code ignored;
          socket.close(ignored);
        })) {}
  ~HangUpLater() { loop_.clock().CancelTimer(timer_); }
  HangUpLater(const HangUpLater&) = delete;
  HangUpLater& operator=(const HangUpLater&) = delete;

 private:
  Loop& loop_;
  Clock::TimerId timer_;
};

// A web server's certificate and key, loaded again when their files change (http-tls.md 2). New connections
// get the new certificate; those that are open keep the one that they began with.
class ServerCertificate {
 public:
  // Loads the files. Error(kInvalid) names `setting`, the file and the reason. `loop` outlives it.
  ServerCertificate(Loop& loop, CertificateFiles files, std::string setting, log::Logger logger);

  // For the next connection.
  boost::asio::ssl::context& context() { return *loaded_.context; }
  // How long the loop spends on a signature with the key, measured when it was loaded.
  Duration signing_time() const { return loaded_.signing_time; }

  // Follows the files and warns of the certificate's end, until it is cancelled.
  Task<> Follow() { return checks_.Run(); }

 private:
  struct Loaded {
    std::unique_ptr<boost::asio::ssl::context> context;
    std::string identity;  // of the files
    WallTime begins;
    WallTime ends;
    Duration signing_time{};
  };

  std::string Identity() const;
  Loaded Load() const;
  SteadyTime Check();
  void Report(const std::string& fault);
  void WarnOfDates();

  Loop& loop_;
  const CertificateFiles files_;
  const std::string setting_;
  log::Logger logger_;
  Loaded loaded_;
  WakeLoop checks_;
  FileWatch watch_;
  std::optional<SteadyTime> faulty_since_;  // since then the files cannot be used; none: they can
  std::string reported_;                    // the last fault that was logged
  std::optional<SteadyTime> warned_at_;     // when the last warning of its dates was logged
};

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
