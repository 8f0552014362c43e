
#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

class JobsCommandTest : public CommandTest {
 protected:
  std::string Create(std::string name, std::optional<std::int64_t> limit) {
    out_.str("");
    std::vector<std::string> words = {"job-create", std::move(name)};
    if (limit) words.insert(words.end(), {"--hold-on-failure", std::to_string(*limit)});
    EXPECT_EQ(Run(std::move(words)), 0);
    return out_.str();
  }
  int Delete(std::string id) { return Run({"job-delete", "--", std::move(id)}); }
};

// operations.13.5
TEST_F(JobsCommandTest, Golden) {
  EXPECT_EQ(Shown({"job-list"}),
            "+----+------+-----------------+\n"
            "| ID | Name | Hold on Failure |\n"
            "+----+------+-----------------+\n"
            "+----+------+-----------------+\n");
  EXPECT_FALSE(Exists("/nodepool"));
  Create("unit-py27", 2);
  Create("^unit-", std::nullopt);
  EXPECT_EQ(Create("unit-py28", 0),
            "+----+-----------+-----------------+\n"
            "| ID | Name      | Hold on Failure |\n"
            "+----+-----------+-----------------+\n"
            "| 0  | unit-py27 | 2               |\n"
            "| 1  | ^unit-    | None            |\n"
            "| 2  | unit-py28 | 0               |\n"
            "+----+-----------+-----------------+\n");
  EXPECT_EQ(
      ShownAsJson({"job-list"}),
      R"([{"id":0,"name":"unit-py27","hold_on_failure":2},{"id":1,"name":"^unit-","hold_on_failure":null},)"
      R"({"id":2,"name":"unit-py28","hold_on_failure":0}])"
      "\n");
}

// operations.13.5
TEST_F(JobsCommandTest, ARuleThatExistsIsNotMadeAgain) {
  std::string listed = Create("unit", 2);
  EXPECT_EQ(Create("unit", 2), listed);
  EXPECT_EQ(log_.Count("Rule 0 for unit exists already"), 1);
  EXPECT_EQ(Run({"job-create", "unit", "--hold-on-failure", "3"}), 1);
  EXPECT_EQ(log_.Count("Rule 0 for unit exists, and would apply before the new one; job-delete 0 first"), 1);
  EXPECT_FALSE(Exists("/nodepool/jobs/0000000001"));
}

// operations.16.25
TEST_F(JobsCommandTest, DeletesByNumber) {
  Create("a", 1);
  Create("b", 1);
  Put("/nodepool/jobs/holds", "");
  for (std::string none : {"99", "-1", "", "a", "holds", "99999999999", "0000000000/x"})
    EXPECT_EQ(Delete(none), 1) << none;
  EXPECT_EQ(log_.Count("Job 99 not found"), 1);
  EXPECT_EQ(Delete("1"), 0);
  EXPECT_EQ(Delete("1"), 1);
  EXPECT_FALSE(Exists("/nodepool/jobs/0000000001"));
  EXPECT_EQ(Delete("0000000000"), 0);
  EXPECT_TRUE(Exists("/nodepool/jobs/holds"));
}

TEST_F(JobsCommandTest, NamesThatCannotBeMeant) {
  Create("unit", {});
  Create("^unit-(a|b)$", {});
  auto refusal = [this](std::string name) {
    Outcome<int> created = time_.Run(Attempt(Command({"job-create", std::move(name)})));
    return created ? "" : created.error().message();
  };
  EXPECT_THAT(refusal("^("), HasSubstr("not a regular expression"));
  for (std::string bad : {std::string(), std::string("\xff"), std::string(256, 'a')})
    EXPECT_THAT(refusal(bad), HasSubstr("NAME"));
}

}  // namespace
}  // namespace nodepool::cli
