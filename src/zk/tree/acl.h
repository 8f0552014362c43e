#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zk/types.h"

namespace nodepool::zk {

// What an entry of an access list may permit; the protocol's bits.
namespace permission {
constexpr std::int32_t kRead = 1;
constexpr std::int32_t kWrite = 2;
constexpr std::int32_t kCreate = 4;
constexpr std::int32_t kDelete = 8;
constexpr std::int32_t kAdmin = 16;
constexpr std::int32_t kAll = 31;
}  // namespace permission

// An identity that a connection has authenticated: (scheme, id), e.g. ("digest", "user:base64 of a
// SHA-1").
struct Identity {
  std::vector<std::pair<std::string, std::string>> names;
};

// Roughly the memory that it takes.
std::size_t BytesOf(const Acl& acl);

// Whether `acl` (null: open to everybody) grants one of the `wanted` permissions.
bool Permits(const Acl* acl, std::int32_t wanted, const Identity& who);

// The list that a znode gets for what a client `asked`: "auth" becomes the client's
// own names; null when the list is open to everybody. kInvalidAcl for an empty list,
// for schemes other than world, auth and digest, and for malformed ids.
Result<std::shared_ptr<const Acl>> ResolveAcl(const Acl& asked, const Identity& who);

// The id of "user:password" in the scheme digest.
std::string DigestId(std::string_view credentials);

}  // namespace nodepool::zk
