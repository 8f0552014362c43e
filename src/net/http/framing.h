#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <optional>
#include <string_view>

namespace nodepool::net {

// Why it is unsure where the request ends or for which host it is, so that a proxy in front of the server may
// have understood it differently (RFC 9112, 3.2 and 6.3); nullopt where both are clear.
std::optional<std::string_view> FramingFault(
    const boost::beast::http::header<true, boost::beast::http::fields>& request);

}  // namespace nodepool::net
