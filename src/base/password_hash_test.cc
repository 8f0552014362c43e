#include "base/password_hash.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/encoding.h"

namespace nodepool {
namespace {

TEST(PasswordHashTest, OnlyTheSecretMatches) {
  std::string hash = HashSecret("open sesame");
  EXPECT_TRUE(IsSecretHash(hash)) << hash;
  EXPECT_TRUE(MatchesHash("open sesame", hash));
  EXPECT_FALSE(MatchesHash("open sesam", hash));
  EXPECT_FALSE(MatchesHash("", hash));
  EXPECT_NE(hash, HashSecret("open sesame")) << "the salt is fresh";
}

// REQ-27
TEST(PasswordHashTest, ARandomSecretNeedsNoSlowHash) {
  std::string secret = RandomSecret();
  std::string hash = HashRandomSecret(secret);
  EXPECT_EQ(hash, "$sha256$" + Sha256Hex(secret));
  EXPECT_TRUE(IsSecretHash(hash));
  EXPECT_TRUE(IsQuickHash(hash));
  EXPECT_TRUE(MatchesHash(secret, hash));
  EXPECT_FALSE(MatchesHash(RandomSecret(), hash));
  EXPECT_FALSE(MatchesHash("", hash));
  EXPECT_FALSE(MatchesHash("open sesame", HashRandomSecret("open sesame")))
      << "a chosen secret is not random";
  EXPECT_FALSE(IsQuickHash(HashSecret(secret)));
}

TEST(PasswordHashTest, OtherTextsAndExpensiveHashesAreRefused) {
  for (const char* bad :
       {"", "open sesame", "$sha256$", "$sha256$abc",
        "$sha256$BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD", "$argon2id$",
        "$argon2i$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaA",
        "$argon2id$v=19$m=99999999,t=2,p=1$c2FsdHNhbHQ$aGFzaA",
        "$argon2id$v=19$m=19456,t=11,p=1$c2FsdHNhbHQ$aGFzaA",
        "$argon2id$v=19$m=19456,t=2,p=9$c2FsdHNhbHQ$aGFzaA", "$argon2id$v=19$m=x,t=2,p=1$c2FsdHNhbHQ$aGFzaA",
        "$argon2id$v=19$m=19456,t=2,p=1$$aGFzaA"}) {
    EXPECT_FALSE(IsSecretHash(bad)) << bad;
    EXPECT_FALSE(MatchesHash("open sesame", bad)) << bad;
  }
}

TEST(DigestTest, KnownValues) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(KeyedDigest("key", "The quick brown fox jumps over the lazy dog")),
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

}  // namespace
}  // namespace nodepool
