#include "model/decline_reasons.h"

#include <gmock/gmock.h>

namespace nodepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

NodeRequest Reread(const NodeRequest& request) { return *ParseNodeRequest(ToJson(request), WallTime()); }

TEST(DeclineReasonsTest, AreReadBackFromTheRecord) {
  NodeRequest request;
  AddDeclineReason(request, "fake-cloud main: it has no label smal; did you mean small?");
  request = Reread(request);
  AddDeclineReason(request, "static-hosts main: it has no label smal");
  EXPECT_THAT(
      ToJson(request),
      HasSubstr(R"("decline_reasons": ["fake-cloud main: it has no label smal; did you mean small?", )"
                R"("static-hosts main: it has no label smal"])"));
  EXPECT_THAT(DeclineReasons(Reread(request)),
              ElementsAre("fake-cloud main: it has no label smal; did you mean small?",
                          "static-hosts main: it has no label smal"));
}

// coordination.md 4.3: what no pool has declined has no such key.
TEST(DeclineReasonsTest, ARequestWithoutADeclineHasNoKeyForThem) {
  NodeRequest request;
  AddDeclineReason(request, "");
  EXPECT_THAT(ToJson(request), Not(HasSubstr("decline_reasons")));
  EXPECT_THAT(DeclineReasons(request), IsEmpty());
}

TEST(DeclineReasonsTest, OtherUnknownKeysAreKept) {
  NodeRequest request =
      *ParseNodeRequest(R"({"jenkins_label": "a", "decline_reasons": 7, "x": {"y": 1}})", WallTime());
  EXPECT_THAT(DeclineReasons(request), IsEmpty());
  AddDeclineReason(request, "c p: full");
  EXPECT_EQ(request.foreign.unknown,
            R"("jenkins_label": "a", "x": {"y": 1}, "decline_reasons": ["c p: full"])");
}

TEST(DeclineReasonsTest, AreBounded) {
  NodeRequest request;
  AddDeclineReason(request, "c p: first\nsecond");
  AddDeclineReason(request, "c p: first second");
  EXPECT_THAT(DeclineReasons(request), ElementsAre("c p: first second"));
  AddDeclineReason(request, std::string(10'000, 'x'));
  EXPECT_THAT(DeclineReasons(request).back(), SizeIs(503)) << "cut, with three dots";
  for (int i = 0; i < 1000; ++i) AddDeclineReason(request, "reason " + std::to_string(i));
  EXPECT_THAT(DeclineReasons(request), SizeIs(100));
}

}  // namespace
}  // namespace nodepool
