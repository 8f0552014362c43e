#include "cli/commands/complete.h"

#include <gtest/gtest.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

class CompleteTest : public CommandTest {
 protected:
  std::string Of(const std::string& kind) {
    out_.str("");
    EXPECT_EQ(IsInConfig(kind) ? CompleteFromConfig(kind, *config_, out_)
                               : time_.Run(CompleteFromTree(context_, kind)),
              0);
    return out_.str();
  }
};

TEST_F(CompleteTest, NamesAreThoseOfTheConfiguration) {
  config_->common.labels[LabelName("large")];
  config_->common.labels[LabelName("small")];
  config_->common.diskimages[ImageName("debian")];
  config_->common.providers.emplace_back().name = ProviderName("cloud");
  EXPECT_EQ(Of("labels"), "large\nsmall\n");
  EXPECT_EQ(Of("images"), "debian\n");
  EXPECT_EQ(Of("providers"), "cloud\n");
}

TEST_F(CompleteTest, IdsAreThoseOfTheTree) {
  EXPECT_EQ(Of("nodes"), "");
  AddNode(ReadyNode());
  NodeRequest request;
  request.SetState(RequestState::kRequested, FromSeconds(1));
  time_.Run(others_.requests.Create("200", request, true));
  Put("/nodepool/images/debian/builds/0000000001", R"({"state": "ready"})");
  EXPECT_EQ(Of("nodes"), "0000000000\n");
  EXPECT_EQ(Of("requests"), "200-0000000000\n");
  EXPECT_EQ(Of("builds"), "debian-0000000001\n");
}

TEST_F(CompleteTest, EveryKindHasValues) {
  for (const std::string& kind : ValueKinds()) EXPECT_EQ(Of(kind), "") << kind;
}

}  // namespace
}  // namespace nodepool::cli
