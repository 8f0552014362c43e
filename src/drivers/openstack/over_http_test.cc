// The driver over the real HTTP client and a real connection.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "driver/testing/recorder.h"
#include "drivers/openstack/openstack_fixture_for_test.h"
#include "net/http/curl_client.h"
#include "net/http/http_server.h"

namespace nodepool::drivers::openstack {
namespace {

class OverHttpTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    server_.Listen("127.0.0.1", 0);
    real_.SetBase("http://127.0.0.1:" + std::to_string(server_.port()));
    config->cloud_config.credentials.options["auth_url"] = real_.base() + "/identity";
    driver::cloud::AdapterEnvironment environment{{loop_, random, blocking_pool}, framework_, this};
    auto client = std::make_unique<net::CurlClient>(loop_, blocking_pool, "nodepool/test");
    over_http_ = std::make_unique<OpenstackAdapter>(environment, config, std::move(client));
  }
  void TearDown() override {
    RunToEnd(loop_, over_http_->Stop());
    over_http_.reset();
    RunToEnd(loop_, server_.Stop());
    OpenstackTest::TearDown();
  }

  Loop loop_;
  driver::cloud::Framework framework_;
  testing::OpenstackImposter real_{loop_, ""};
  net::HttpServer server_{loop_,
                          [this](net::HttpRequest request) { return real_.Answer(std::move(request)); },
                          net::HttpLimits{.body_bytes = 1 << 20}};
  std::unique_ptr<OpenstackAdapter> over_http_;
};

TEST_F(OverHttpTest, AServerLives) {
  driver::cloud::CreateParameters parameters;
  parameters.hostname = "np1";
  parameters.pool = config->pools.begin()->second;
  parameters.label = parameters.pool->labels.begin()->second;
  parameters.metadata = {{"nodepool_node_id", "1"}, {"nodepool_provider_name", "cloud"}};
  driver::testing::Recorder face;
  auto instance = RunToEnd(loop_, over_http_->Create(face, parameters));
  EXPECT_EQ(instance.external_id, face.external_id);
  EXPECT_EQ(instance.interface_ip, instance.private_ipv4);
  EXPECT_EQ(real_.LastCall("POST", "/compute/v2.1/servers")->headers.at("user-agent"), "nodepool/test");
  EXPECT_EQ(RunToEnd(loop_, over_http_->ListInstances()).size(), 1u);
  RunToEnd(loop_, over_http_->Delete(face, face.external_id));
  EXPECT_TRUE(real_.servers.empty());
}

// The service receives exactly the file.
TEST_F(OverHttpTest, AnImageIsUploaded) {
  std::string path = ::testing::TempDir() + "over_http_test.qcow2";
  std::string contents;
  for (int i = 0; i < 200'000; ++i) contents += static_cast<char>(i * 7919 >> 3);
  std::ofstream(path) << contents;
  driver::ImageUploadParameters upload;
  upload.name = "debian-1";
  upload.filename = path;
  upload.format = "qcow2";
  upload.metadata = {{"nodepool_build_id", "b1"}};
  std::string id = RunToEnd(loop_, over_http_->UploadImage(upload));
  EXPECT_TRUE(real_.images.at(id).contents == contents);
  std::filesystem::remove(path);
}

// Lists longer than what is parsed on the loop.
TEST_F(OverHttpTest, LongListsAreRead) {
  real_.page_size = 300;
  for (int i = 0; i < 1000; ++i) real_.AddServer({{"some", std::string(100, 'x')}});
  EXPECT_EQ(RunToEnd(loop_, over_http_->ListInstances()).size(), 1000u);
  EXPECT_EQ(real_.Count("GET", "/compute/v2.1/servers/detail"), 4);
}

}  // namespace
}  // namespace nodepool::drivers::openstack
