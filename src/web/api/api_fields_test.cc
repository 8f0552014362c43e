#include "web/api/api_fields.h"

#include <gtest/gtest.h>

namespace nodepool::web {
namespace {

using launcher::ReasonOf;

std::string TextOf(const launcher::RequestStatus& status, WallTime now) {
  listing::AgedText text;
  RequestFields().Append(text, status);
  std::string shown;
  text.AppendTo(shown, now);
  return shown;
}

// A contract with programs: keys, their order and values must not change by accident.
TEST(RequestFieldsTest, AWaitingRequest) {
  NodeRequest record;
  record.SetState(RequestState::kRequested, FromSeconds(1'000'000'050));
  record.created_time = FromSeconds(1'000'000'000);
  record.node_types = {LabelName("small"), LabelName("large")};
  record.requestor = "zuul";
  record.event_id = "e1";
  record.declined_by = {LauncherId("l1")};
  PoolKey pool{ProviderName("cloud"), PoolName("main")};
  launcher::RequestStatus status{RequestId("200-0000000012"), &record, std::nullopt, {}};
  status.reason = sched::RequestReason{"tenant-limit", {}, "tenant t has 8 of max-servers 8", "np02"};
  status.waits.push_back(
      ReasonOf(pool, {sched::Decision::Kind::kDefer, sched::Reason::kCapacityReserved, "instances"}));
  EXPECT_EQ(
      TextOf(status, FromSeconds(1'000'000'061.5)),
      R"({"id":"200-0000000012","state":"requested","age":61,"labels":["small","large"],"requestor":"zuul",)"
      R"("tenant":null,"provider":null,"priority":0,"event_id":"e1","nodes":[],"declined_by":["l1"],)"
      R"("accepted_by":null,"waits":[{"provider":"cloud","pool":"main","reason":"capacity-reserved",)"
      R"("text":"keeps its capacity for an earlier request, which waits for instances"}],)"
      R"("reason":{"code":"tenant-limit","provider":null,"pool":null,)"
      R"("text":"tenant t has 8 of max-servers 8","launcher":"np02"},)"
      R"("decline_reasons":[],"is_deleted":false})");
}

TEST(RequestFieldsTest, AnAcceptedRequestThatMissesCapacity) {
  NodeRequest record;
  record.SetState(RequestState::kPending, FromSeconds(1'000'000'000));
  record.node_types = {LabelName("small")};
  record.provider = ProviderName("cloud");
  record.tenant_name = "t1";
  PoolKey pool{ProviderName("cloud"), PoolName("main")};
  sched::PoolView view;
  view.key = pool;
  view.pool = {{{"instances", 2}}, {}, {{"instances", 2}}, {}};
  sched::FillPlan plan;
  plan.wait = record.node_types;
  plan.pool_shortage = {{"instances", 1}};
  launcher::RequestStatus status{RequestId("200-0000000012"), &record, pool, {ReasonOf(view, plan)}};
  EXPECT_EQ(TextOf(status, FromSeconds(1'000'000'000)),
            R"({"id":"200-0000000012","state":"pending","age":0,"labels":["small"],"requestor":null,)"
            R"("tenant":"t1","provider":"cloud","priority":0,"event_id":null,"nodes":[],"declined_by":[],)"
            R"("accepted_by":{"provider":"cloud","pool":"main"},"waits":[{"provider":"cloud","pool":"main",)"
            R"("reason":"capacity","text":"uses 2 of 2 instances; raise its max-servers, or wait for nodes",)"
            R"("labels":["small"],"missing":{"pool":{"instances":1},"provider":{}}}],"reason":null,)"
            R"("decline_reasons":[],"is_deleted":false})");
}

}  // namespace
}  // namespace nodepool::web
