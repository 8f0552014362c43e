#include "cli/commands/provider_pause.h"

#include <gmock/gmock.h>

#include "cli/commands/info.h"
#include "cli/commands/record_listings.h"
#include "cli/commands/status.h"
#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProviderPauseCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    auto provider = std::make_shared<driver::ProviderConfig>();
    provider->name = ProviderName("cloud");
    config_->providers[provider->name] = provider;
    config_->common.providers.push_back({provider->name, "fake", {}});
    context_.user = "alice@host";
  }
  int Pause(const std::string& provider, std::optional<std::string> reason = {}, bool is_drained = false) {
    return time_.Run(PauseProvider(context_, ProviderName(provider), std::move(reason), is_drained));
  }
  int Unpause(const std::string& provider) {
    return time_.Run(UnpauseProvider(context_, ProviderName(provider)));
  }
};

// ACT-1
TEST_F(ProviderPauseCommandTest, TheSwitchSaysWhoAndWhy) {
  EXPECT_EQ(Pause("cloud", "upgrade", true), 0);
  auto record = zk_.tree().Get("/nodepool/paused-providers/cloud");
  EXPECT_THAT(record->data, HasSubstr(R"({"reason": "upgrade", "drain": true, "paused_by": "alice@host")"));
  EXPECT_EQ(Unpause("cloud"), 0);
  EXPECT_FALSE(Exists("/nodepool/paused-providers/cloud"));
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(Unpause("cloud"), 0);
  EXPECT_EQ(out_.str(), "Provider cloud is not paused\n");
}

// ACT-1
TEST_F(ProviderPauseCommandTest, AnUnknownProviderIsAnError) {
  EXPECT_EQ(Pause("clod"), 1);
  EXPECT_EQ(log_.Count("clod is not one of the configured providers"), 1);
  EXPECT_EQ(Unpause("clod"), 1);
  EXPECT_EQ(log_.Count("clod is not configured, and there are no records of it; did you mean cloud?"), 1);
  EXPECT_FALSE(Exists("/nodepool"));
}

// ACT-2, ACT-7
TEST_F(ProviderPauseCommandTest, EveryListShowsIt) {
  EXPECT_THAT(Shown(InfoListing(ProviderName("cloud"))), Not(HasSubstr("Paused")));
  Pause("cloud", "upgrade");
  Put("/nodepool/paused-providers/gone", R"({"paused_by": "bob"})");
  std::string listed = Shown(ProviderListing());
  EXPECT_THAT(listed, HasSubstr("paused by alice@host: upgrade"));
  EXPECT_THAT(listed, AllOf(HasSubstr("gone"), HasSubstr("paused by bob")));
  EXPECT_THAT(ShownAsJson(ProviderListing()), HasSubstr(R"("state":"paused")"));
  EXPECT_THAT(Shown(StatusListing(Output::kTable)),
              HasSubstr("Provider cloud is paused by alice@host: upgrade"));
  EXPECT_THAT(Shown(InfoListing(ProviderName("cloud"))), HasSubstr("\n\nPaused:\n"));
  EXPECT_THAT(ShownAsJson(InfoListing(ProviderName("cloud"))), HasSubstr(R"("paused_by":"alice@host")"));
}

}  // namespace
}  // namespace nodepool::cli
