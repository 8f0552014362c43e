#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nodepool {

// Hashes of secrets for files: argon2id in its usual text form,
// "$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>".

// Random bytes that nobody can guess, from the operating system. Throws Error(kFail) when there are none.
std::string SecretBytes(std::size_t count);

// The hash, with a fresh salt. Takes some 20 ms and 19 MiB.
std::string HashSecret(std::string_view secret);

// Whether the text is such a hash, of at most 64 MiB, 10 passes and 4 lanes, so that its verification is
// bounded.
bool IsSecretHash(std::string_view hash);

// Takes as long as the hash says. False as well for a text that is no hash.
bool MatchesHash(std::string_view secret, const std::string& hash);

}  // namespace nodepool
