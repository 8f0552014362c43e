#include "base/rsa_key.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <optional>

#include "base/encoding.h"

namespace nodepool {
namespace {

// In place of a question on the terminal.
int NoPassPhrase(char*, int, int, void*) { return 0; }

std::unexpected<Error> NoKey(const char* why) {
  ERR_clear_error();
  return Unexpected(Verdict::kInvalid, why);
}

}  // namespace

Expected<RsaKey> RsaKey::Parse(std::string_view pem) {
  std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                 &BIO_free);
  std::shared_ptr<EVP_PKEY> key(PEM_read_bio_PrivateKey(text.get(), nullptr, &NoPassPhrase, nullptr),
                                &EVP_PKEY_free);
  if (!key) return NoKey("expected a private RSA key as PEM text, without a pass phrase");
  if (EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA)
    return NoKey("expected a private RSA key, found one of another kind");
  return RsaKey(std::move(key));
}

std::string RsaKey::Sign(std::string_view text) const {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t length = 0;
  bool is_good = EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
                 EVP_DigestSign(context.get(), nullptr, &length, bytes, text.size()) == 1;
  std::string signature(length, '\0');
  is_good = is_good && EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                                      &length, bytes, text.size()) == 1;
  if (!is_good) throw Error(Verdict::kFail, "OpenSSL cannot sign with the RSA key");
  signature.resize(length);
  return signature;
}

std::string SignedToken(const RsaKey& key, std::string_view claims, std::string_view key_id) {
  boost::json::object header{{"alg", "RS256"}, {"typ", "JWT"}};
  if (!key_id.empty()) header["kid"] = key_id;
  std::string text = Base64Url(boost::json::serialize(header)) + "." + Base64Url(claims);
  return text + "." + Base64Url(key.Sign(text));
}

std::string Base64Url(std::string_view bytes) {
  std::string text = Base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

Expected<std::string> FromBase64Url(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain.append((4 - plain.size() % 4) % 4, '=');
  std::optional<std::string> bytes = FromBase64(plain);
  if (!bytes) return Unexpected(Verdict::kInvalid, "this is not base64url");
  return *bytes;
}

}  // namespace nodepool
