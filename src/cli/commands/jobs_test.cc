#include "cli/commands/jobs.h"

#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobsCommandTest : public CommandTest {
 protected:
  std::string Create(std::string name, std::optional<std::int64_t> limit) {
    out_.str("");
    EXPECT_EQ(time_.Run(CreateJob(context_, {std::move(name), limit, {}})), 0);
    return out_.str();
  }
  int Delete(std::string id) { return time_.Run(DeleteJob(context_, std::move(id))); }
};

// operations.13.5
TEST_F(JobsCommandTest, Golden) {
  EXPECT_EQ(Shown(JobListing(Output::kTable)),
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
      ShownAsJson(JobListing(Output::kJson)),
      R"([{"id":0,"name":"unit-py27","hold_on_failure":2},{"id":1,"name":"^unit-","hold_on_failure":null},)"
      R"({"id":2,"name":"unit-py28","hold_on_failure":0}])"
      "\n");
}

// operations.13.5
TEST_F(JobsCommandTest, ARuleThatExistsIsNotMadeAgain) {
  std::string listed = Create("unit", 2);
  EXPECT_EQ(Create("unit", 2), listed);
  EXPECT_EQ(log_.Count("Rule 0 for unit exists already"), 1);
  EXPECT_EQ(time_.Run(CreateJob(context_, {"unit", 3, {}})), 1);
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
  EXPECT_THAT(RefuseBadJobName("unit"), IsEmpty());
  EXPECT_THAT(RefuseBadJobName("^unit-(a|b)$"), IsEmpty());
  EXPECT_THAT(RefuseBadJobName("^("), HasSubstr("not a regular expression"));
  for (std::string bad : {std::string(), std::string("\xff"), std::string(256, 'a')})
    EXPECT_FALSE(RefuseBadJobName(bad).empty());
}

}  // namespace
}  // namespace nodepool::cli
