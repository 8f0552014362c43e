#include "net/http/curl.h"

#include <gtest/gtest.h>

namespace nodepool::net {

namespace {

TEST(UrlTest, HasItsParts) {
  std::optional<Url> url = Url::Parse("https://cloud.example:5000/v3/auth?x=1#y");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme(), "https");
  EXPECT_EQ(url->host(), "cloud.example");
  EXPECT_EQ(url->port(), "5000");
  EXPECT_EQ(url->path(), "/v3/auth");
}

TEST(UrlTest, ThePortOfTheSchemeIsUsual) {
  std::optional<Url> url = Url::Parse("http://cloud.example");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->port(), "80");
  EXPECT_EQ(url->path(), "/");
}

TEST(UrlTest, SecretsCanBeRemoved) {
  std::optional<Url> url = Url::Parse("http://user:password@cloud.example/v3?token=1#y");
  ASSERT_TRUE(url);
  url->RemoveSecrets();
  EXPECT_EQ(url->text(), "http://cloud.example/v3");
}

TEST(UrlTest, WhatIsNotAUrlIsRefused) {
  EXPECT_FALSE(Url::Parse(""));
  EXPECT_FALSE(Url::Parse("http://a b/"));
}

TEST(UrlTest, ComponentsAreEncoded) { EXPECT_EQ(PercentEncoded("a-Z_0.~ /%\xc3"), "a-Z_0.~%20%2F%25%C3"); }

}  // namespace

}  // namespace nodepool::net
