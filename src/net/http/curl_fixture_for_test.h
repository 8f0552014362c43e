#pragma once

#include <gtest/gtest.h>

#include "async/run_to_end.h"
#include "net/http/curl_client.h"

namespace nodepool::net {

// A client on a loop of its own.
class CurlFixture : public ::testing::Test {
 protected:
  HttpReply Send(HttpCall call) { return RunToEnd(loop_, client_.Send(std::move(call))); }
  // What a call fails with that has to fail.
  HttpError Failure(HttpCall call) {
    try {
      Send(std::move(call));
    } catch (const HttpError& error) {
      return error;
    }
    ADD_FAILURE() << "there was an answer";
    return HttpError(Verdict::kFail, "", false);
  }

  Loop loop_;
  BlockingPool pool_{1};
  CurlClient client_{loop_, pool_, "nodepool/test"};
};

}  // namespace nodepool::net
