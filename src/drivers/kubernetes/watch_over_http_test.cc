// Watches over the real HTTP client and a real connection.
#include "async/run_to_end.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"
#include "net/http/curl_client.h"
#include "net/http/http_server.h"

namespace nodepool::drivers::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WatchOverHttpTest : public KubernetesTest {
 protected:
  void SetUp() override {
    KubernetesTest::SetUp();
    server_.Listen("127.0.0.1", 0);
    connection.server = "http://127.0.0.1:" + std::to_string(server_.port());
    Means means = MeansFor(loop_, imposter, connection);
    means.http = std::make_unique<net::CurlClient>(loop_, pool_, "nodepool/test");
    driver::ProviderEnvironment environment{loop_, random, pool_, records, [] {}, this};
    cloud_ = std::make_unique<Cloud>(std::move(environment), config, std::move(means));
  }
  void TearDown() override {
    RunToEnd(loop_, cloud_->tasks.Stop());
    cloud_.reset();
    RunToEnd(loop_, server_.Stop());
    KubernetesTest::TearDown();
  }

  static std::string Line(const std::string& name, std::size_t padding) {
    return R"({"type":"ADDED","object":{"metadata":{"name":")" + name + R"(","annotations":{"a":")" +
           std::string(padding, 'x') + "\"}}}}\n";
  }
  // The objects that a watch brings.
  std::vector<std::string> Watch() {
    std::vector<std::string> names;
    auto on_event = [&names](const WatchEvent& event) { names.push_back(event.object.name); };
    RunToEnd(loop_, cloud_->cluster.Watch("/api/v1/pods?watch=true", std::chrono::seconds(60), on_event));
    return names;
  }
  std::string WatchFails() {
    try {
      Watch();
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kFail);
      return error.message();
    }
    ADD_FAILURE() << "the watch ended as usual";
    return "";
  }

  Loop loop_;
  BlockingPool pool_{1};  // ends before the loop, which its thread reports to
  std::string answer_;
  net::HttpServer server_{loop_, [this](net::HttpRequest) { return Answer(answer_); }};
  std::unique_ptr<Cloud> cloud_;

 private:
  static Task<net::HttpResponse> Answer(std::string body) {
    net::HttpResponse response;
    response.body = std::move(body);
    co_return response;
  }
};

// Large events are read elsewhere, and stay where they were among the others.
TEST_F(WatchOverHttpTest, EventsComeInTheirOrder) {
  answer_ = Line("a", 1) + Line("b", 3 << 20) + Line("c", 1) + Line("d", 100'000) + Line("e", 10);
  EXPECT_THAT(Watch(), ElementsAre("a", "b", "c", "d", "e"));
}

// K8S-100
TEST_F(WatchOverHttpTest, ALineWithoutEndIsRefused) {
  answer_ = Line("a", 1) + std::string(5 << 20, 'x');
  EXPECT_THAT(WatchFails(), HasSubstr("a line of the answer is longer than 4096 KiB"));
}

}  // namespace
}  // namespace nodepool::drivers::kubernetes
