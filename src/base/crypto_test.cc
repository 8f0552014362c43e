#include "base/crypto.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/text.h"

namespace nodepool {

namespace {

// Of "open sesame", by another program.
constexpr const char* kSlowHash =
    "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$JjZP/I6X2TrSFcSclpQcl0xkXn5Wkw602PzwMqBEnUc";

TEST(PasswordHashTest, OnlyTheSecretMatches) {
  std::string hash = kSlowHash;
  EXPECT_TRUE(IsSecretHash(hash)) << hash;
  EXPECT_TRUE(MatchesHash("open sesame", hash));
  EXPECT_FALSE(MatchesHash("open sesam", hash));
  EXPECT_FALSE(MatchesHash("", hash));
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
  EXPECT_FALSE(IsQuickHash(kSlowHash));
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

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

KeyPtr NewRsa() { return {EVP_RSA_gen(2048), &EVP_PKEY_free}; }

template <class Write>
std::string Pem(Write write) {
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  write(out.get());
  char* data = nullptr;
  auto size = static_cast<std::size_t>(BIO_get_mem_data(out.get(), &data));
  return {data, size};
}

std::string Pkcs8(EVP_PKEY* key) {
  return Pem(
      [key](BIO* out) { PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::string Pkcs1(EVP_PKEY* key) {
  return Pem([key](BIO* out) {
    PEM_write_bio_PrivateKey_traditional(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

bool IsSignedBy(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key);
  return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
}

// RUN-5: keys in both formats; the signature is RS256.
TEST(RsaKeyTest, BothFormatsSign) {
  KeyPtr key = NewRsa();
  for (const std::string& pem : {Pkcs1(key.get()), Pkcs8(key.get())}) {
    Expected<RsaKey> read = RsaKey::Parse(pem);
    ASSERT_TRUE(read) << read.error().message();
    std::string token = SignedToken(*read, R"({"iss":"x"})");
    std::size_t last = token.rfind('.');
    EXPECT_TRUE(token.starts_with("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJ4In0.")) << token;
    Expected<std::string> signature = FromBase64Url(token.substr(last + 1));
    ASSERT_TRUE(signature);
    EXPECT_TRUE(IsSignedBy(key.get(), token.substr(0, last), *signature));
  }
}

// RUN-5
TEST(RsaKeyTest, OtherTextsAreRefused) {
  KeyPtr other(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  std::string cut = Pkcs8(NewRsa().get()).substr(0, 300);
  for (const std::string& pem : {std::string(), std::string("secret"), cut, Pkcs8(other.get())}) {
    Expected<RsaKey> read = RsaKey::Parse(pem);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().verdict(), Verdict::kInvalid);
    EXPECT_EQ(read.error().message().find("secret"), std::string::npos);
  }
}

TEST(RsaKeyTest, Base64Url) {
  std::string bytes("\xfb\xff\x00z", 4);
  EXPECT_EQ(Base64Url(bytes), "-_8Aeg");
  EXPECT_EQ(FromBase64Url("-_8Aeg"), bytes);
  EXPECT_FALSE(FromBase64Url("a b"));
  EXPECT_FALSE(FromBase64Url("abcde"));
}

}  // namespace

}  // namespace nodepool
