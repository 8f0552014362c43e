#include "cli/commands/node_selection.h"

#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using listing::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeSelectionTest : public CommandTest {
 protected:
  NodeSelectionTest() {
    AddNode(ReadyNode());
    Node other = ReadyNode();
    other.provider = ProviderName("elsewhere");
    AddNode(other);
    AddNode(ReadyNode());
  }

  std::optional<std::vector<std::string>> Selected(NodeSelection selection) {
    return time_.Run(SelectNodes(context_, std::move(selection), "delete"));
  }
  static NodeSelection Of(const std::string& provider) {
    return {.ids = {}, .filter = {{Kind::kProvider, {provider}}, {Kind::kState, {"ready"}}}};
  }
  void Answer(const std::string& line) {
    context_.can_ask = true;
    context_.read_line = [line] { return Line(line); };
  }
  static Task<std::string> Line(std::string line) { co_return line; }
};

TEST_F(NodeSelectionTest, GivenIdsAreTakenAsTheyAre) {
  EXPECT_THAT(*Selected({.ids = {"7", "bogus"}}), ElementsAre("7", "bogus"));
}

TEST_F(NodeSelectionTest, OneThatMatchesNeedsNoConfirmation) {
  EXPECT_THAT(*Selected(Of("elsewhere")), ElementsAre("0000000001"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(NodeSelectionTest, WhenNoneMatchesItIsSaid) {
  EXPECT_THAT(*Selected(Of("nowhere")), IsEmpty());
  EXPECT_EQ(out_.str(), "No node matches\n");
  EXPECT_EQ(log_.Count("nowhere is not configured, and there are no records of it"), 1);
}

TEST_F(NodeSelectionTest, SeveralNeedYesWhereNobodyCanAnswer) {
  EXPECT_FALSE(Selected(Of("cloud")));
  EXPECT_EQ(log_.Count("2 nodes match; --yes is missing to delete them all"), 1);
  NodeSelection selection = Of("cloud");
  selection.is_confirmed = true;
  EXPECT_THAT(*Selected(selection), ElementsAre("0000000000", "0000000002"));
}

TEST_F(NodeSelectionTest, APersonIsShownThemAndAsked) {
  Answer("y");
  EXPECT_THAT(*Selected(Of("cloud")), ElementsAre("0000000000", "0000000002"));
  EXPECT_THAT(out_.str(), HasSubstr("| 0000000002 |"));
  EXPECT_THAT(out_.str(), HasSubstr("Really delete these 2 nodes? [N/y] "));
  Answer("");
  EXPECT_FALSE(Selected(Of("cloud")));
}

}  // namespace
}  // namespace nodepool::cli
