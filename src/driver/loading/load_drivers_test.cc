#include "driver/loading/load_drivers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "async/testing/virtual_time.h"
#include "driver/loading/load_config.h"
#include "driver/records_environment.h"
#include "driver/testing/scripted_driver.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::driver {

namespace {

// Throws from every function.
class WildProvider : public nodepool::testing::ScriptedProvider {
 public:
  using ScriptedProvider::ScriptedProvider;
  void Idle() override { throw std::runtime_error("Idle throws"); }
  Readiness LabelReady(const LabelConfig&) override { throw 7; }
  QuotaInformation AvailableQuota() override { return QuotaInformation::Limit({{"cores", std::nan("")}}); }
  QuotaInformation QuotaForLabel(const LabelConfig&) override {
    return QuotaInformation::Amount({{"cores", -1}});
  }
  void InvalidateQuota() override { throw std::runtime_error("InvalidateQuota throws"); }
  void NodeDeleted(const NodeId&, const Node&) override { throw std::runtime_error("NodeDeleted throws"); }
  std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig>,
                                                     const store::StoredRequest&) override {
    return nullptr;
  }
};

class WildDriver : public nodepool::testing::ScriptedDriver {
 public:
  WildDriver() : ScriptedDriver(scripts_) {}
  void Reset() override { throw std::runtime_error("Reset throws"); }
  std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                           std::shared_ptr<const ProviderConfig> config) override {
    if (makes_nothing) return nullptr;
    return std::make_unique<WildProvider>(std::move(environment), std::move(config), script_);
  }
  bool makes_nothing = false;

 private:
  std::map<ProviderName, nodepool::testing::Script> scripts_;
  nodepool::testing::Script script_;
};

class GuardedProviderTest : public ::testing::Test {
 protected:
  GuardedProviderTest() {
    auto made = std::make_unique<WildDriver>();
    wild = made.get();
    drivers.Add(std::move(made));
    config->name = ProviderName("wild");
    config->driver = "scripted";
  }
  ~GuardedProviderTest() override { time.Run(client->Close()); }
  std::unique_ptr<Provider> Make() {
    ProviderEnvironment environment{{time.loop(), random, blocking_pool}, records, [] {}};
    return CreateGuarded(drivers, std::move(environment), config);
  }

  nodepool::testing::VirtualTime time;
  nodepool::testing::MemoryZk zk{time.loop()};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  RecordsEnvironment records{store, nodes, images};
  Registry drivers;
  WildDriver* wild = nullptr;
  std::shared_ptr<ProviderConfig> config = std::make_shared<ProviderConfig>();
};

TEST_F(GuardedProviderTest, UnexpectedExceptionsAreLoggedOnce) {
  std::unique_ptr<Provider> provider = Make();
  log::Capture capture;
  LabelConfig label;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(provider->LabelReady(label), Readiness::kNotReady);
  EXPECT_EQ(capture.Count("The driver of provider wild failed in LabelReady: unknown exception"), 1);
  provider->Idle();
  provider->InvalidateQuota();
  provider->NodeDeleted(NodeId("1"), Node());
  EXPECT_EQ(capture.Count("NodeDeleted throws"), 1);
  EXPECT_EQ(provider->config().name, config->name);
}

TEST_F(GuardedProviderTest, AnswersThatMakeNoSenseAreErrors) {
  std::unique_ptr<Provider> provider = Make();
  EXPECT_THROW(provider->AvailableQuota(), Error);
  EXPECT_THROW(provider->QuotaForLabel(LabelConfig()), Error);
  EXPECT_THROW(provider->RequestHandler(nullptr, store::StoredRequest()), Error);
}

// A driver that knows nothing of images and commands refuses, in place of doing nothing.
TEST_F(GuardedProviderTest, ImagesAndDeletionsByCommandsAreRefusedByDefault) {
  auto images = CreateImageStore(drivers, {time.loop(), random, blocking_pool}, config);
  EXPECT_TRUE(FailedWith(time.Run(Attempt(images->UploadImage({}))), Verdict::kInvalid));
  EXPECT_TRUE(FailedWith(time.Run(Attempt(images->DeleteImage("i"))), Verdict::kInvalid));
  auto tools = CreateOperatorTools(drivers, {{time.loop(), random, blocking_pool}, store}, config);
  EXPECT_TRUE(FailedWith(time.Run(Attempt(tools->DeleteResources(NodeId("1"), Node()))), Verdict::kInvalid));
  EXPECT_TRUE(time.Run(tools->ListMachines()).empty());
  config->fault = "clouds.yaml has no such cloud";
  EXPECT_THROW(CreateImageStore(drivers, {time.loop(), random, blocking_pool}, config), Error);
  EXPECT_THROW(CreateOperatorTools(drivers, {{time.loop(), random, blocking_pool}, store}, config), Error);
}

TEST_F(GuardedProviderTest, NoDriverOrNoProviderIsAnError) {
  wild->makes_nothing = true;
  EXPECT_THROW(Make(), Error);
  config->driver = "unheard-of";
  EXPECT_THROW(Make(), Error);
}

}  // namespace

}  // namespace nodepool::driver
