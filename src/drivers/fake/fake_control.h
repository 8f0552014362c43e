#pragma once

#include "drivers/fake/fake_cloud.h"
#include "net/http/http_server.h"

namespace nodepool::drivers {

// Controls a simulated cloud from a test in another process (D-81): HTTP on loopback, bodies are JSON.
//
//   GET /servers, GET /images      what there is
//   DELETE /servers/<id>           the machine vanishes, as if deleted by another client
//   GET /settings                  latencies and failure rates by the names of `simulation`, limits
//   PUT /settings                  changes the given ones until the configuration is read again
//   POST /faults                   the next so many operations fail: creates, creates-with-server,
//                                  hanging-creates, deletes, uploads, image-deletes; pause-creates,
//                                  pause-uploads (booleans)
class FakeControl {
 public:
  // `cloud` outlives this. Error(kInvalid): the port is not available.
  FakeControl(Loop& loop, FakeCloud& cloud, int port);

  int port() const { return server_.port(); }
  Task<> Stop() { return server_.Stop(); }

  // The answer to a request; has no effects except on the cloud.
  static Task<net::HttpResponse> Answer(FakeCloud& cloud, net::HttpRequest request);

 private:
  net::HttpServer server_;
};

}  // namespace nodepool::drivers
