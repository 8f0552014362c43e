#include "runners/forgejo/waiting_jobs.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

namespace nodepool::runners::forgejo {
namespace {

using ::testing::HasSubstr;

std::vector<WaitingJob> JobsIn(const std::string& text, const std::string& repository = "octo/app") {
  return ReadWaitingJobs(boost::json::parse(text), "https://forge.example.org", repository);
}

// RUN-90
TEST(WaitingJobsTest, AListAndNull) {
  auto jobs = JobsIn(
      R"([{"id": 9, "attempt": 2, "handle": "h-9", "name": "test", "runs_on": ["small"], "status": "waiting", "repo_id": 4},
          {"id": 7, "attempt": 1, "handle": "h-7", "name": "build", "runs_on": ["small", "gpu"], "repo_id": 4}])");
  ASSERT_EQ(jobs.size(), 2);
  EXPECT_EQ(jobs[0].handle, "h-7");
  EXPECT_EQ(jobs[0].job.request, 7001);
  EXPECT_EQ(jobs[0].job.repository, "octo/app");
  EXPECT_EQ(jobs[0].job.run_url, "https://forge.example.org/octo/app/actions");
  EXPECT_EQ(jobs[1].job.request, 9002);
  EXPECT_EQ(JobsIn(R"([{"id": 9, "handle": "h", "repo_id": 4}])", "")[0].job.repository, "repository 4");
  for (const char* none : {"null", "[]", "{}", "7"}) EXPECT_TRUE(JobsIn(none).empty()) << none;
}

TEST(WaitingJobsTest, OddEntriesAreLeftOut) {
  for (const char* odd : {R"({"handle": "h"})", R"({"id": 1})", R"({"id": "x", "handle": "h"})",
                          R"({"id": 1, "handle": "a b"})", R"({"id": 1, "handle": "--label"})",
                          R"({"id": 1, "handle": "h", "status": "running"})", "5", "null"})
    EXPECT_TRUE(JobsIn("[" + std::string(odd) + "]").empty()) << odd;
  std::string many = "[";
  for (int i = 1; i <= 3000; ++i) many += R"({"id": )" + std::to_string(i) + R"(, "handle": "h"},)";
  many.back() = ']';
  EXPECT_EQ(JobsIn(many).size(), 1000);
  std::string name(5000, 'x');
  EXPECT_LT(JobsIn(R"([{"id": 1, "handle": "h", "name": ")" + name + "\"}]")[0].job.job.size(), 400);
}

// RUN-93
TEST(WaitingJobsTest, TooOldServersAreNamed) {
  EXPECT_EQ(FaultOfVersion("15.0.0+gitea-1.22.0"), "");
  EXPECT_EQ(FaultOfVersion("16.1"), "");
  EXPECT_THAT(FaultOfVersion("14.0.2+gitea-1.22.0"), HasSubstr("Forgejo 14.0.2"));
  EXPECT_THAT(FaultOfVersion("14.0.2+gitea-1.22.0"), HasSubstr("Forgejo 15 or newer"));
  EXPECT_THAT(FaultOfVersion("1.26.0"), HasSubstr("Gitea 1.26.0"));
  EXPECT_THAT(FaultOfVersion(""), HasSubstr("(unknown)"));
}

}  // namespace
}  // namespace nodepool::runners::forgejo
