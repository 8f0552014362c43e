#include "store/min_ready_requests.h"

#include <gmock/gmock.h>

#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MinReadyRequestsTest : public ::testing::Test {
 protected:
  std::optional<std::vector<RequestId>> Create(int count, std::int32_t seen_version) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, WallTime());
    request.node_types = {LabelName("small")};
    std::vector<NodeRequest> copies(static_cast<std::size_t>(count), request);
    auto creation = requests_.Create(std::move(copies), seen_version);
    return world_.Run(std::move(creation));
  }

  World world_;
  MinReadyRequests requests_{world_.store.tree};
};

// As on an empty tree: the version is known before there is any request.
TEST_F(MinReadyRequestsTest, AreMadeTogether) {
  std::int32_t version = world_.Run(requests_.Version());
  bool is_made = Create(2, version).has_value();
  ASSERT_TRUE(is_made || Create(2, version));
  EXPECT_THAT(world_.Children("/nodepool/requests"), ElementsAre("900-0000000000", "900-0000000001"));
  auto stored = world_.Run(world_.store.requests.Read(RequestId("900-0000000001")));
  ASSERT_TRUE(stored);
  EXPECT_TRUE(stored->revision.is_ephemeral());
  EXPECT_THAT(stored->record.node_types, ElementsAre(LabelName("small")));
}

TEST_F(MinReadyRequestsTest, OfTwoDecisionsOnTheSameRecordsOneIsCarriedOut) {
  world_.Put("/nodepool/requests", "");
  std::int32_t version = world_.Run(requests_.Version());
  EXPECT_EQ(world_.Run(requests_.Version()), version);
  EXPECT_THAT(*Create(1, version), ElementsAre(RequestId("900-0000000000")));
  EXPECT_FALSE(Create(1, version));
  EXPECT_THAT(*Create(1, world_.Run(requests_.Version())), ElementsAre(RequestId("900-0000000001")));
}

TEST_F(MinReadyRequestsTest, ALostAnswerMakesNoSecondRequest) {
  world_.Put("/nodepool/requests", "");
  std::int32_t version = world_.Run(requests_.Version());
  world_.faulty.FailNth(0, testing::FaultyZk::Fault::kAfter);
  EXPECT_FALSE(Create(1, version));
  EXPECT_EQ(world_.Children("/nodepool/requests").size(), 1u);
}

}  // namespace
}  // namespace nodepool::store
