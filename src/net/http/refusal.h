#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string_view>

namespace nodepool::net {

// Answers whatever the client has sent with the status and a line of text, in plain HTTP, as far as this is
// possible without waiting, and closes the connection.
void Refuse(boost::asio::ip::tcp::socket& socket, int status, std::string_view text);

}  // namespace nodepool::net
