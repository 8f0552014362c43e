#include "web/lists/negotiation.h"

#include <gtest/gtest.h>

namespace nodepool::web {
namespace {

// The table of operations.6.1.
TEST(NegotiationTest, TextIsPreferred) {
  EXPECT_EQ(ChooseFormat(std::nullopt), Format::kText);
  for (const char* accept :
       {"*/*", "text/*", "text/plain", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "application/json, */*", "application/json, text/plain", "TEXT/Plain", "text/html;q=0.1"}) {
    EXPECT_EQ(ChooseFormat(accept), Format::kText) << accept;
  }
}

TEST(NegotiationTest, JsonWhenItIsWantedMore) {
  for (const char* accept : {"application/json", "application/*", "application/json;q=0.9, text/plain;q=0.5",
                             "Application/JSON ; q=1.0", "text/*;q=0, */*", "application/json, image/png"}) {
    EXPECT_EQ(ChooseFormat(accept), Format::kJson) << accept;
  }
}

TEST(NegotiationTest, NothingAcceptable) {  // D-62
  for (const char* accept :
       {"image/png", "application/json;q=0", "application/json;charset=utf-8", "", " ", "*/*;q=0"}) {
    EXPECT_EQ(ChooseFormat(accept), std::nullopt) << accept;
  }
}

TEST(NegotiationTest, WhatCannotBeReadMeansText) {
  for (const char* accept : {"json", "application/json;q=x", "/", "application/json;q=2", "*/json",
                             "application/json;q", "\x01/\x02", "application/ json"}) {
    EXPECT_EQ(ChooseFormat(accept), Format::kText) << accept;
  }
}

// HTTP-6
TEST(NegotiationTest, GzipWhereItIsPreferred) {
  for (const char* header : {"gzip", "gzip, deflate, br", "br, GZIP;q=0.5", "gzip ; q=1.0", "x-gzip", "*",
                             "deflate, *;q=0.1", "gzip;q=0.5, identity;q=0.5", "gzip;q=0.001", ", gzip ,"}) {
    EXPECT_TRUE(PrefersGzip(header)) << header;
  }
  for (const char* header : {"", "identity", "br", "x-gzip2", "gzip;q=0", "gzip; q=0.000", "*;q=0",
                             "gzip;q=0, *", "identity, *;q=0.5", "gzip;q=0.4, identity;q=0.5", "gzip;q=x",
                             "gzip;q=2", "gzip;q", "gzip;level=9", "gzip, b r", "gzip;"}) {
    EXPECT_FALSE(PrefersGzip(header)) << header;
  }
}

}  // namespace
}  // namespace nodepool::web
