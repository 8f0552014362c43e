#include "driver/cloud/launch/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::driver::cloud {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Itself(const std::string& place) { return place; }

TEST(CandidatesTest, AllPlacesForTheFirstTypeThenForTheNext) {
  std::vector<std::string> places = {"a", ""};
  std::vector<Candidate<std::string>> candidates = CandidatesOf<std::string>({"large", "small"}, places);
  EXPECT_THAT(NamesOf<std::string>(candidates, false, &Itself),
              ElementsAre("large in a", "large", "small in a", "small"));
  EXPECT_EQ(NamesOf<std::string>(candidates, true, &Itself).front(), "large spot in a");
}

TEST(CandidatesTest, OneIsNoChoice) {
  EXPECT_THAT(NamesOf<std::string>(CandidatesOf<std::string>({"large"}, {"a"}), false, &Itself), IsEmpty());
}

TEST(CandidatesTest, TheOneThatTheLaunchTries) {
  std::vector<Candidate<std::string>> candidates = CandidatesOf<std::string>({"large", "small"}, {"a"});
  CreateParameters parameters;
  EXPECT_EQ(ChosenOf(candidates, parameters).type, "large");
  parameters.candidate = 1;
  EXPECT_EQ(ChosenOf(candidates, parameters).type, "small");
  parameters.candidate = 2;
  EXPECT_EQ(ChosenOf(candidates, parameters).type, "small") << "the configuration has become shorter";
}

}  // namespace
}  // namespace nodepool::driver::cloud
