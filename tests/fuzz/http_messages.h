#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nodepool::net {

struct HttpMessage {
  std::string method;
  std::string target;
  std::string body;
};

// The requests at the beginning of what a client sent, by a strict reading of RFC 9112: the list ends where
// the end of a request is missing, ambiguous or against the rules.
std::vector<HttpMessage> StrictMessages(std::string_view bytes);

}  // namespace nodepool::net
