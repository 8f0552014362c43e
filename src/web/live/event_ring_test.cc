#include "web/live/event_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::web {
namespace {

const Topics kAll = *ReadTopics("");
const Topics kNodesOnly = *ReadTopics("nodes");

SteadyTime At(int seconds) { return SteadyTime(std::chrono::seconds(seconds)); }

std::string EventsFrom(EventRing& ring, EventRing::Position from, Topics topics) {
  std::optional<EventRing::Part> part = ring.Read(from, topics);
  return part ? *part->text : "lost";
}

TEST(EventRing, EventsAreTextOfAStream) {
  EventRing ring("e");
  EventRing::Position begin = ring.end();
  ring.Append(Topic::kNodes, R"({"id":"1"})", At(0));
  ring.Append(Topic::kRequests, "{}", At(0));
  EXPECT_EQ(EventsFrom(ring, begin, kAll),
            "id: e-1\nevent: nodes\ndata: {\"id\":\"1\"}\n\nid: e-2\nevent: requests\ndata: {}\n\n");
  EXPECT_EQ(EventsFrom(ring, begin, kNodesOnly), "id: e-1\nevent: nodes\ndata: {\"id\":\"1\"}\n\n");
  EXPECT_EQ(EventsFrom(ring, ring.end(), kAll), "");
}

TEST(EventRing, ReadersOfTheSameShareTheText) {
  EventRing ring("e");
  ring.Append(Topic::kNodes, "{}", At(0));
  EXPECT_EQ(ring.Read(1, kAll)->text, ring.Read(1, kNodesOnly)->text) << "one event is not copied";
  EventRing::Part before = *ring.Read(1, kAll);
  ring.Append(Topic::kNodes, "{}", At(0));
  EXPECT_EQ(ring.Read(1, kAll)->text, ring.Read(1, kAll)->text);
  EXPECT_NE(ring.Read(1, kAll)->text, before.text);
}

TEST(EventRing, WhatIsKeptIsBounded) {  // PAGE-4
  EventRing by_count("e", {.events = 3});
  for (int i = 0; i < 5; ++i) by_count.Append(Topic::kNodes, "{}", At(i));
  EXPECT_EQ(EventsFrom(by_count, 2, kAll), "lost");
  EXPECT_THAT(EventsFrom(by_count, 3, kAll), ::testing::StartsWith("id: e-3\n"));
  EventRing by_size("e", {.bytes = 1000});
  for (int i = 0; i < 5; ++i) by_size.Append(Topic::kNodes, std::string(400, '1'), At(i));
  EXPECT_EQ(EventsFrom(by_size, 3, kAll), "lost");
  EXPECT_NE(EventsFrom(by_size, 4, kAll), "lost");
  by_size.Append(Topic::kNodes, std::string(4000, '1'), At(6));
  EXPECT_EQ(EventsFrom(by_size, 6, kAll).size(),
            4000 + std::string("id: e-6\nevent: nodes\ndata: \n\n").size());
}

TEST(EventRing, ALongAbsenceIsReadInParts) {
  EventRing ring("e", {.part_bytes = 100});
  for (int i = 0; i < 4; ++i) ring.Append(Topic::kNodes, std::string(30, '1'), At(0));
  EventRing::Part first = *ring.Read(1, kAll);
  EXPECT_EQ(first.next, 2u);
  EXPECT_EQ(ring.Read(first.next, kAll)->next, 3u);
}

// REQ-24
TEST(EventRing, AnEventAboutALeaseIsForThoseWhoMaySeeIt) {
  const Topics leases = *ReadTopics("leases");
  EventRing ring("e");
  ring.Append(Topic::kLeases, "\"own\"", At(0), {"ci", true});
  ring.Append(Topic::kLeases, "\"shown\"", At(0), {"ci", false});
  auto text = [&](const Viewer& viewer) { return *ring.Read(1, leases, viewer)->text; };
  EXPECT_EQ(text({"ci"}), "id: e-1\nevent: leases\ndata: \"own\"\n\n");
  EXPECT_EQ(text({"ci", true}), text({"ci"})) << "once, although it may see all";
  EXPECT_EQ(text({"ops", true}), "id: e-2\nevent: leases\ndata: \"shown\"\n\n");
  EXPECT_EQ(text({"other"}), "");
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(ring.Read(1, leases, {"other"})->next, ring.end());
}

TEST(EventRing, IdsArePositions) {  // PAGE-2
  EventRing ring("e", {.events = 2});
  EXPECT_EQ(ring.After("e-0"), 1u) << "nothing has happened yet";
  for (int i = 0; i < 4; ++i) ring.Append(Topic::kNodes, "{}", At(i));
  EXPECT_EQ(ring.After("e-4"), 5u);
  EXPECT_EQ(ring.After("e-2"), 3u);
  for (const char* lost : {"e-1", "e-5", "f-4", "e", "e-", "e-4x", "", "e--1", "e-99999999999999999999"})
    EXPECT_EQ(ring.After(lost), std::nullopt) << lost;
  EXPECT_EQ(ring.Since(At(3)), 4u);
  EXPECT_EQ(ring.Since(At(9)), ring.end());
  ring.Clear();
  EXPECT_EQ(ring.After("e-4"), std::nullopt) << "what happened meanwhile is not known";
  EXPECT_EQ(EventsFrom(ring, 5, kAll), "lost");
}

TEST(Topics, NamesChooseThem) {
  EXPECT_EQ(kAll.count(), std::size(kTopicNames) - 1);
  EXPECT_FALSE(Contains(kAll, Topic::kLeases)) << "it has to be named";
  EXPECT_TRUE(Contains(kNodesOnly, Topic::kNodes));
  EXPECT_EQ(ReadTopics("nodes,requests")->count(), 2u);
  EXPECT_THAT(ReadTopics("nodes,colours").error().message(), ::testing::HasSubstr("not colours."));
}

}  // namespace
}  // namespace nodepool::web
