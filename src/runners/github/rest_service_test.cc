// GitHub by webhooks and lists, against answers of GitHub, in virtual time.
#include "runners/github/rest_service.h"

#include <gmock/gmock.h>

#include "async/testing/virtual_time.h"
#include "runners/github/scripted_github_for_test.h"
#include "store/store.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::runners::github {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kRuns = "GET /repos/octo/app/actions/runs";
constexpr const char* kJobs = "GET /repos/octo/app/actions/runs/70/jobs";
constexpr const char* kJit = "POST /orgs/octo/actions/runners/generate-jitconfig";

std::string RunsAnswer(const std::string& head = "octo/app") {
  return R"({"workflow_runs": [{"id": 70, "head_repository": {"full_name": ")" + head + "\"}}]}";
}
std::string JobEntry(int number, const std::string& state, const std::string& runner = "") {
  return R"({"id": )" + std::to_string(number) + R"(, "run_id": 70, "status": ")" + state +
         R"(", "labels": ["small"], "runner_name": ")" + runner + "\"}";
}

class RestServiceTest : public ::testing::Test {
 protected:
  RestServiceTest() {
    settings_.mode = config::RunnerMode::kPoll;
    settings_.repositories = {"octo/app"};
    settings_.credentials.token = "ghp_personal";
    time_.RunUntil([this] { return client_->state() == zk::SessionState::kConnected; });
    records_.Start();
    time_.Run(records_.WaitSynced());
  }
  void TearDown() override {
    service_.reset();
    time_.Run(records_.Stop());
    time_.Run(client_->Close());
  }
  RestService& service() {
    if (!service_) {
      service_ = std::make_unique<RestService>(time_.loop(), random_, http_, metrics_, settings_, records_);
      Run(service_->MakeSet({.name = "small", .group = 3, .labels = {"small"}}));
      session_ = Run(service_->OpenSession(1, "we"));
    }
    return *service_;
  }
  template <class T>
  T Run(Task<T> task) {
    return time_.Run(std::move(task), minutes(30));
  }
  template <class T>
  std::string FailureOf(Task<T> task) {
    Outcome<T> outcome = Run(Attempt(std::move(task)));
    return outcome ? "none" : outcome.error().message();
  }
  // What the next message says, which is acknowledged.
  std::vector<std::string> Next() {
    std::optional<MessageBatch> batch = Run(service().NextBatch(session_, 0, 5));
    std::vector<std::string> said;
    for (const JobMessage& message : batch->jobs)
      said.push_back(
          fmt::format("{} {} {}", static_cast<int>(message.kind), message.job.request, message.runner_name));
    statistics_ = batch->statistics.value();
    Run(service().Acknowledge(session_, batch->id));
    return said;
  }
  void Deliver(int number, WorkflowJobState state, const std::string& repository = "octo/app") {
    WorkflowJob job{.state = state, .service = "octo", .run = 70, .labels = {"small"}};
    job.job.request = number;
    job.job.repository = repository;
    job.seen_time = time_.loop().Now();
    Run(store_.runners.NoteJob(std::move(job)));
    Run(records_.CatchUp());
  }
  static std::string Say(JobMessage::Kind kind, int number, const std::string& runner = "") {
    return fmt::format("{} {} {}", static_cast<int>(kind), number, runner);
  }

  nodepool::testing::VirtualTime time_;
  SeededRandom random_{1};
  metrics::Metrics metrics_;
  nodepool::testing::MemoryZk zk_{time_.loop()};
  std::unique_ptr<zk::Client> client_ = zk_.Connect();
  store::Store store_{time_.loop(), *client_, random_};
  store::RunnerCache records_{time_.loop(), *client_};
  ScriptedGithub http_{time_.loop()};
  config::RunnerService settings_{.name = "octo", .url = "https://github.com/octo"};
  MessageSession session_;
  sched::JobStatistics statistics_;
  std::unique_ptr<RestService> service_;
};

// RUN-85: runs that go on have jobs that wait, too; what has not changed is not sent again.
TEST_F(RestServiceTest, PollsFindJobs) {
  http_.answers[kRuns] = {{200, {{"etag", "\"runs\""}}, RunsAnswer()},
                          {200, {{"etag", "\"runs\""}}, RunsAnswer()},
                          {304, {}, ""}};
  http_.answers[kJobs] = {{200, {{"etag", "\"jobs\""}}, "{\"jobs\": [" + JobEntry(7, "queued") + "]}"},
                          {304, {}, ""}};
  service();
  EXPECT_EQ(session_.statistics.assigned, 1);
  EXPECT_THAT(http_.calls[0].url, HasSubstr("status=queued"));
  EXPECT_THAT(http_.calls[1].url, HasSubstr("status=in_progress"));
  EXPECT_THAT(Next(), ElementsAre(Say(JobMessage::Kind::kAvailable, 7)));
  EXPECT_EQ(statistics_.available, 1);
  EXPECT_THAT(Run(service().Acquire(session_, {7, 8})), ElementsAre(7));
  EXPECT_THAT(Next(), IsEmpty());
  EXPECT_EQ(statistics_.assigned, 1);
  EXPECT_EQ(HeaderIn(http_.calls[3], "If-None-Match"), "\"runs\"");
  EXPECT_EQ(HeaderIn(http_.calls.back(), "If-None-Match"), "\"jobs\"");
}

// RUN-85
TEST_F(RestServiceTest, AllPagesAreRead) {
  std::string many = "{\"jobs\": [";
  for (int i = 1; i <= 100; ++i) many += JobEntry(i, "queued") + (i < 100 ? "," : "]}");
  http_.Answer(kRuns, 200, RunsAnswer());
  http_.answers[kJobs] = {{200, {}, many}, {200, {}, "{\"jobs\": [" + JobEntry(101, "queued") + "]}"}};
  service();
  EXPECT_EQ(session_.statistics.assigned, 101);
  EXPECT_THAT(http_.calls.back().url, HasSubstr("page=2"));
}

// RUN-85: 300 calls a minute at most.
TEST_F(RestServiceTest, PollsOfManyRepositoriesAreRare) {
  for (int i = 0; i < 100; ++i) settings_.repositories.push_back("octo/r" + std::to_string(i));
  service();
  std::size_t calls = http_.calls.size();
  Next();  // after 50 s
  EXPECT_LE(http_.calls.size() - calls, 250);
}

// What becomes of a job is told to the run that has it.
TEST_F(RestServiceTest, JobsThatBeginAndEnd) {
  settings_.mode = config::RunnerMode::kWebhook;
  Deliver(7, WorkflowJobState::kQueued);
  EXPECT_THAT(Next(), ElementsAre(Say(JobMessage::Kind::kAvailable, 7)));
  const std::string runner = "np123456-small-0123abcd";
  WorkflowJob job{
      .state = WorkflowJobState::kInProgress, .service = "octo", .labels = {"small"}, .runner_name = runner};
  job.job.request = 7;
  job.job.repository = "octo/app";
  Run(store_.runners.NoteJob(job));
  EXPECT_THAT(Next(),
              ElementsAre(Say(JobMessage::Kind::kGone, 7), Say(JobMessage::Kind::kStarted, 7, runner)));
  job.state = WorkflowJobState::kCompleted;
  job.result = "success";
  Run(store_.runners.NoteJob(job));
  EXPECT_THAT(Next(), ElementsAre(Say(JobMessage::Kind::kCompleted, 7, runner)));
}

// RUN-81
TEST_F(RestServiceTest, AMessageIsRepeatedUntilItIsAcknowledged) {
  settings_.mode = config::RunnerMode::kWebhook;
  Deliver(7, WorkflowJobState::kQueued);
  service();
  EXPECT_EQ(Run(service().NextBatch(session_, 0, 5))->jobs.size(), 1);
  EXPECT_EQ(Next().size(), 1);
  Deliver(7, WorkflowJobState::kQueued);
  EXPECT_THAT(Next(), IsEmpty());
}

// RUN-82
TEST_F(RestServiceTest, ASweepFindsLostDeliveries) {
  settings_.mode = config::RunnerMode::kWebhook;
  http_.answers[kRuns] = {{200, {}, "{}"}, {200, {}, "{}"}, {200, {}, RunsAnswer()}};
  http_.Answer(kJobs, 200, "{\"jobs\": [" + JobEntry(9, "queued") + "]}");
  service();
  Deliver(7, WorkflowJobState::kQueued);
  EXPECT_THAT(Next(), ElementsAre(Say(JobMessage::Kind::kAvailable, 7)));
  std::size_t calls = http_.calls.size();
  EXPECT_THAT(Next(), IsEmpty());
  EXPECT_EQ(http_.calls.size(), calls) << "deliveries cost no calls";
  std::vector<std::string> said;
  for (int i = 0; i < 10 && said.empty(); ++i) said = Next();
  EXPECT_THAT(said, ElementsAre(Say(JobMessage::Kind::kAvailable, 9), Say(JobMessage::Kind::kGone, 7)));
}

// RUN-82: of all that the app is installed for.
TEST_F(RestServiceTest, TheFirstListIsOfAllRepositories) {
  settings_.mode = config::RunnerMode::kWebhook;
  settings_.repositories.clear();
  http_.Answer(
      "GET /installation/repositories", 200,
      R"({"repositories": [{"full_name": "octo/app"}, {"full_name": "other/x"}, {"full_name": 5}]})");
  http_.Answer(kRuns, 200, RunsAnswer());
  http_.Answer(kJobs, 200, "{\"jobs\": [" + JobEntry(7, "queued") + "]}");
  service();
  EXPECT_EQ(session_.statistics.assigned, 1);
  EXPECT_EQ(http_.Count("/repos/other/"), 0);
}

// RUN-87: by a list, which says it, and by a delivery, for which it is looked up once.
TEST_F(RestServiceTest, RunsOfForksAreLeftAlone) {
  settings_.mode = config::RunnerMode::kWebhook;
  http_.Answer(kRuns, 200, "{}");
  http_.Answer("GET /repos/octo/app/actions/runs/70", 200,
               R"({"head_repository": {"full_name": "mallory/app"}})");
  service();
  Deliver(7, WorkflowJobState::kQueued);
  Deliver(8, WorkflowJobState::kQueued);
  EXPECT_THAT(Run(service().Acquire(session_, {7, 8})), IsEmpty());
  EXPECT_EQ(http_.Count("/actions/runs/70"), 1);
  service_.reset();
  settings_.allows_forks = true;
  service();
  EXPECT_THAT(Run(service().Acquire(session_, {7, 8})), ElementsAre(7, 8));
}

// RUN-87: a run that is not there, or whose repository was deleted.
TEST_F(RestServiceTest, WhatCannotBeLookedUpIsLeftAlone) {
  http_.Answer(kRuns, 200, RunsAnswer("mallory/app"));
  http_.Answer(kJobs, 200, "{\"jobs\": [" + JobEntry(7, "queued") + "]}");
  service();
  EXPECT_THAT(Run(service().Acquire(session_, {7})), IsEmpty());
  EXPECT_EQ(http_.Count("/actions/runs/70?"), 0) << "the list said it";
  http_.answers[kRuns] = {{200, {}, "{\"workflow_runs\": [{\"id\": 70, \"head_repository\": null}]}"}};
  service_.reset();
  service();
  EXPECT_THAT(Run(service().Acquire(session_, {7})), IsEmpty());
}

// RUN-86
TEST_F(RestServiceTest, Registrations) {
  http_.Answer(kJit, 201, R"({"runner": {"id": 8, "name": "np-1"}, "encoded_jit_config": "c2VjcmV0"})");
  Registration made = Run(service().Register({.set = 1, .name = "np-1"}));
  EXPECT_EQ(made.id, 8);
  EXPECT_EQ(made.configuration, "c2VjcmV0");
  EXPECT_EQ(http_.calls.back().body,
            R"({"name":"np-1","runner_group_id":3,"labels":["small"],"work_folder":"_work"})");
  EXPECT_TRUE(http_.calls.back().is_sent_once());
  for (auto [status, said] :
       {std::pair{409, "the name of the runner is taken"}, std::pair{422, "labels of the set"},
        std::pair{403, "permission"}, std::pair{404, "no such address or runner group"}}) {
    http_.answers[kJit] = {{status, {}, R"({"message": "because"})"}};
    std::string failure = FailureOf(service().Register({.set = 1, .name = "np-1"}));
    EXPECT_THAT(failure, ::testing::AllOf(HasSubstr(said), HasSubstr("because")));
  }
  http_.answers[kJit] = {{403, {{"retry-after", "60"}}, R"({"message": "secondary rate limit"})"}};
  EXPECT_THAT(FailureOf(service().Register({.set = 1, .name = "np-1"})),
              ::testing::Not(HasSubstr("permission")));
}

// RUN-63
TEST_F(RestServiceTest, AtMostTwentyRegistrationsAtATime) {
  http_.Answer(kJit, 201, R"({"runner": {"id": 8, "name": "np-1"}, "encoded_jit_config": "c2VjcmV0"})");
  service();
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  int ended = 0;
  for (int i = 0; i < 50; ++i) {
    auto register_one = [](RestService& from, int& count) -> Task<> {
      RunnerOrder order{.set = 1, .name = "np-1"};
      co_await from.Register(std::move(order));
      ++count;
    };
    tasks.Spawn("register", register_one(service(), ended));
  }
  time_.RunUntil([&] { return ended == 50; });
  EXPECT_EQ(http_.most_at_once, 20);
  Run(tasks.Stop());
}

// RUN-84
TEST_F(RestServiceTest, RunnerGroups) {
  EXPECT_EQ(Run(service().GroupId("")), 1);
  http_.Answer("GET /orgs/octo/actions/runner-groups", 200,
               R"({"runner_groups": [{"id": 3, "name": "nodepool", "allows_public_repositories": true}]})");
  EXPECT_EQ(Run(service().GroupId("nodepool")), 3);
  EXPECT_THAT(FailureOf(service().GroupId("other")), HasSubstr("no runner group other"));
}

// RUN-35
TEST_F(RestServiceTest, ARunnerWithAJobIsBusy) {
  std::string path = "DELETE /orgs/octo/actions/runners/8";
  http_.Answer(path, 422, R"({"message": "Runner is still running a job"})");
  EXPECT_EQ(Run(service().RemoveRunner(8)), Removal::kBusy);
  http_.answers[path] = {{404, {}, ""}};
  EXPECT_EQ(Run(service().RemoveRunner(8)), Removal::kGone);
  http_.Answer("GET /orgs/octo/actions/runners", 200,
               R"({"runners": [{"id": 8, "name": "NP-1", "status": "offline"}]})");
  EXPECT_EQ(Run(service().FindRunner("np-1"))->id, 8);
  EXPECT_FALSE(Run(service().FindRunner("np-2")));
  EXPECT_TRUE(Run(service().ListRunners()).front().is_offline);
  EXPECT_FALSE(Run(service().HasRunner(9)));
}

// A repository that is not ours to list does not keep the others from it.
TEST_F(RestServiceTest, RepositoriesThatCannotBeListed) {
  settings_.repositories = {"octo/gone", "octo/app"};
  http_.Answer("GET /repos/octo/gone/actions/runs", 403, R"({"message": "Resource not accessible"})");
  http_.Answer(kRuns, 200, RunsAnswer());
  http_.Answer(kJobs, 200, "{\"jobs\": [" + JobEntry(7, "queued") + "]}");
  service();
  EXPECT_EQ(session_.statistics.assigned, 1);
}

// RUN-61: while lists have to wait, deliveries go on.
TEST_F(RestServiceTest, DeliveriesGoOnWithoutLists) {
  settings_.mode = config::RunnerMode::kWebhook;
  http_.answers[kRuns] = {
      {200, {}, "{}"}, {200, {}, "{}"}, {403, {{"retry-after", "3600"}}, "secondary rate limit"}};
  service();
  Deliver(7, WorkflowJobState::kQueued);
  Next();
  time_.Advance(minutes(6));
  EXPECT_THAT(FailureOf(service().NextBatch(session_, 0, 5)), HasSubstr("403"));
  Deliver(8, WorkflowJobState::kQueued);
  SteadyTime begun = time_.loop().SteadyNow();
  EXPECT_THAT(Next(), ElementsAre(Say(JobMessage::Kind::kAvailable, 8)));
  EXPECT_LT(time_.loop().SteadyNow() - begun, seconds(1));
}

}  // namespace
}  // namespace nodepool::runners::github
