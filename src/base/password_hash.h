#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nodepool {

// Hashes of secrets for files. Of a secret with 256 random bits, 64 digits of hex in lower case, SHA-256 is
// enough: "$sha256$<hash in hex>". Of others argon2id in its usual text form,
// "$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>".

// Random bytes that nobody can guess, from the operating system. Throws Error(kFail) when there are none.
std::string SecretBytes(std::size_t count);

// A secret for which SHA-256 is enough.
std::string RandomSecret();

// The hash of a random secret.
std::string HashRandomSecret(std::string_view secret);

// The hash by argon2id, with a fresh salt. Takes some 20 ms and 19 MiB.
std::string HashSecret(std::string_view secret);

// Whether the text is such a hash; argon2id of at most 64 MiB, 10 passes and 4 lanes, so that its
// verification is bounded.
bool IsSecretHash(std::string_view hash);

// Whether its verification takes no time that matters.
bool IsQuickHash(std::string_view hash);

// Takes as long as the hash says. False as well for a text that is no hash.
bool MatchesHash(std::string_view secret, const std::string& hash);

}  // namespace nodepool
