#pragma once

#include "net/http/http.h"

namespace nodepool::web {

// False if a web page of another site may have made the request: it has an Origin, or its Host is a name that
// anybody can point at this host. Addresses, localhost, this host's name and requests without Host are fine.
bool IsForThisHost(const net::HttpRequest& request);

// For requests that carry a token, under whatever name the server is reached: false if a web page of another
// site has made the request, by its Origin. Over the loopback interface the Host has to be this host's, too.
bool IsOfOwnOrigin(const net::HttpRequest& request);

}  // namespace nodepool::web
