#include "net/http/framing.h"

#include <boost/beast/core/string.hpp>

namespace nodepool::net {

namespace http = boost::beast::http;

std::optional<std::string_view> FramingFault(const http::header<true, http::fields>& request) {
  constexpr unsigned kHttp11 = 11;
  std::size_t hosts = request.count(http::field::host);
  if (hosts > 1) return "it has several Host headers";
  if (hosts == 0 && request.version() >= kHttp11) return "it has no Host header";
  std::size_t codings = request.count(http::field::transfer_encoding);
  bool is_chunked = boost::beast::iequals(request[http::field::transfer_encoding], "chunked");
  if (codings > 1 || (codings == 1 && !is_chunked)) return "its Transfer-Encoding is not chunked alone";
  // Of several, or a list, others may take another: 010 is not 10 for all.
  bool is_number =
      request[http::field::content_length].find_first_not_of("0123456789") == std::string_view::npos;
  if (request.count(http::field::content_length) > 1 || !is_number)
    return "its Content-Length is not one number";
  return std::nullopt;
}

}  // namespace nodepool::net
