#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "zk/wire/wire_client.h"

namespace nodepool::zk {

// The client's side of TLS (coordination.md 2.3): own certificate and key, servers
// checked against the CA file and the system's CAs, host names not checked.
// Throws Error(kInvalid) naming the setting and the file that cannot be used.
std::unique_ptr<boost::asio::ssl::context> MakeTlsContext(const TlsFiles& files);

// The embedded server's side: own certificate and key, and clients must show a
// certificate that the CA file signed. Throws the same.
std::unique_ptr<boost::asio::ssl::context> MakeServerTlsContext(const TlsFiles& files);

}  // namespace nodepool::zk
