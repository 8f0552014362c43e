#include "net/http/refusal.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <string>

#include "net/http/http.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;

// The bytes that the peer has sent are read first, since a close would otherwise discard the answer.
void Refuse(tcp::socket& socket, int status, std::string_view text) {
  std::string answer = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}\n",
      status, HttpReason(status), text.size() + 1, text);
  boost::system::error_code ignored;
  char sent[4096];
  socket.non_blocking(true, ignored);
  socket.read_some(asio::buffer(sent), ignored);
  socket.write_some(asio::buffer(answer), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  socket.close(ignored);
}

}  // namespace nodepool::net
