#pragma once

#include "drivers/fake/fake_cloud.h"
#include "net/http/http_server.h"

namespace nodepool::drivers {

// A simulated cloud under the hands of a test in another process (D-81): HTTP on loopback,
// bodies are JSON.
//
//   GET /servers, GET /images      what there is
//   DELETE /servers/<id>           the machine vanishes, as if somebody else had deleted it
//   GET /settings                  latencies and failure rates by the names of `simulation`, limits
//   PUT /settings                  changes those that are given, until the configuration is read again
//   POST /faults                   the next so many operations fail: creates, creates-with-server,
//                                  hanging-creates, deletes, uploads, image-deletes; pause-creates,
//                                  pause-uploads (booleans)
class FakeControl {
 public:
  // `cloud` outlives this. Error(kInvalid) when the port cannot be had.
  FakeControl(Loop& loop, FakeCloud& cloud, int port);

  int port() const { return server_.port(); }
  Task<> Stop() { return server_.Stop(); }

  // The answer to a request; pure but for what it does to the cloud.
  static Task<net::HttpResponse> Answer(FakeCloud& cloud, net::HttpRequest request);

 private:
  net::HttpServer server_;
};

}  // namespace nodepool::drivers
