#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.h"

namespace nodepool::net {

// The limits of a web server for its peers; beyond them a peer gets an error, or its connection is closed.
// For a connection beyond their number another one is closed (seats.h).
struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;  // 431
  std::size_t body_bytes = 64 * 1024;    // 413
  std::size_t connections = 200;         // of strangers
  std::size_t proven_connections = 200;  // beside them, of peers that have proved who they are
  std::size_t unsent_bytes = 64 << 20;   // of all large answers together that peers have not read; 503
  std::size_t streams = 1500;            // connections with a BodyStream, beside the others; 503
  std::size_t proven_streams = 500;      // beside them
  int requests_per_connection = 1000;
  // For sending a request, from its first byte on, and until the first byte of the first one; for a TLS
  // handshake, from the connection on.
  Duration request_time = std::chrono::seconds(10);
  Duration idle_time = std::chrono::seconds(30);    // between requests of a connection
  Duration answer_time = std::chrono::seconds(30);  // for taking an answer, or a piece of a stream
};

}  // namespace nodepool::net
