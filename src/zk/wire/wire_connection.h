#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "zk/wire/wire_client.h"

namespace nodepool::zk {

// The size of the length in front of every frame.
constexpr std::size_t kLengthSize = 4;

// One TCP or TLS connection that carries frames: a 32-bit length and that many
// bytes. Owned by shared_ptr, since a write under way keeps it alive.
class WireConnection : public std::enable_shared_from_this<WireConnection> {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  // `tls` is null for plain TCP; it must outlive the connection. A server's frame
  // of more than `max_frame` bytes is an error.
  WireConnection(Loop& loop, boost::asio::ssl::context* tls, Endpoint endpoint, std::size_t max_frame);
  // The same for a server, with the socket of an accepted client.
  WireConnection(Loop& loop, boost::asio::ssl::context* tls, boost::asio::ip::tcp::socket accepted,
                 std::size_t max_frame);
  WireConnection(const WireConnection&) = delete;
  WireConnection& operator=(const WireConnection&) = delete;

  // Connects, and does the TLS handshake where TLS is on.
  Task<> Open();
  // The server's part of the handshake; nothing for plain TCP.
  Task<> Accept();

  // Bytes to send: append whole frames, then call Flush(). All that is appended in one turn of the
  // loop is sent in one write.
  std::string& out() { return out_; }
  void Flush();

  // Bytes appended that the system has not accepted yet.
  std::size_t unsent() const { return out_.size() + being_written_.size(); }
  Task<> WaitUntilSent();

  // Bytes received and not taken yet.
  std::string_view unread() const { return {in_.data() + begin_, end_ - begin_}; }
  // The memory that holds them, and frames that were taken since the last Fill().
  std::size_t received_capacity() const { return in_.size(); }
  // The next frame received so far, without its length; its bytes live until the
  // next Fill(). Throws Error(kFail) for a length that no server would send.
  std::optional<std::string_view> TakeFrame();
  // The next Fill() will find room for more bytes. It makes room itself, too, but a large one takes long.
  void MakeRoom();
  // Waits for more bytes. Throws Error(kRetry) when the connection ends.
  Task<> Fill();
  // TakeFrame and Fill together: waits for a whole frame.
  Task<std::string> ReadFrame();

  // Ends the connection: the task in Fill() gets Error(kRetry, reason). What is not sent is dropped.
  void Close(std::string reason);
  bool has_tls() const { return tls_.has_value(); }
  bool is_closed() const { return !close_reason_.empty(); }

  // What the hand-shake or the last Fill() failed with; none: neither has.
  boost::system::error_code fault() const { return fault_; }
  // What OpenSSL found wrong with the other side's certificate: X509_V_OK or X509_V_ERR_...
  long certificate_fault();
  // Whether bytes have come in that Fill() has not taken yet.
  bool HasUnreadBytes();
  SteadyTime last_sent() const { return last_sent_; }
  SteadyTime last_received() const { return last_received_; }
  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& name() const { return name_; }
  // "127.0.0.1:2181" or "[::1]:2181"
  static std::string NameOf(const Endpoint& endpoint);

 private:
  void ThrowIf(const boost::system::error_code& error);
  void WriteOut();
  void OnWritten(boost::system::error_code error);

  Loop& loop_;
  Endpoint endpoint_;
  std::string name_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  const std::size_t max_frame_;
  const std::size_t retained_;  // bytes that a buffer may keep although it is empty

  std::string out_;
  std::string being_written_;
  bool is_flush_due_ = false;
  WaitList sent_;

  std::string in_;  // the buffer; bytes [begin_, end_) are received and not yet taken
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  boost::system::error_code fault_;
  std::string close_reason_;
  SteadyTime last_sent_;
  SteadyTime last_received_;
};

// The client's side of TLS (coordination.md 2.3): own certificate and key, servers
// checked against the CA file and the system's CAs, host names not checked.
// Throws Error(kInvalid) naming the setting and the file that cannot be used.
std::unique_ptr<boost::asio::ssl::context> MakeTlsContext(const TlsFiles& files);

// Which of the client's files is at odds with the server's, where a hand-shake failed for that;
// none: it failed for another reason. `certificate_fault` as WireConnection's.
std::optional<std::string> ExplainTlsFault(const boost::system::error_code& fault, long certificate_fault,
                                           const TlsFiles& files);

// The embedded server's side: own certificate and key, and clients must show a
// certificate that the CA file signed. Throws the same.
std::unique_ptr<boost::asio::ssl::context> MakeServerTlsContext(const TlsFiles& files);

// All addresses of all servers, in random order (coordination.md 2.4). Names that
// cannot be resolved are left out and named, with the reason, in `problems`.
Task<std::vector<boost::asio::ip::tcp::endpoint>> ResolveServers(Loop& loop, Random& random,
                                                                 std::vector<HostPort> servers,
                                                                 std::vector<std::string>& problems);

}  // namespace nodepool::zk
