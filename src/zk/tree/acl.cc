#include "zk/tree/acl.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/encoding.h"

namespace nodepool::zk {
namespace {

bool IsOpen(const Acl& acl) {
  return acl.size() == 1 && acl[0] == AclEntry{permission::kAll, "world", "anyone"};
}

bool IsDigestId(std::string_view id) { return !id.empty() && std::count(id.begin(), id.end(), ':') == 1; }

}  // namespace

std::size_t BytesOf(const Acl& acl) {
  std::size_t bytes = 64;
  for (const AclEntry& entry : acl) bytes += sizeof(AclEntry) + entry.scheme.size() + entry.id.size();
  return bytes;
}

bool Permits(const Acl* acl, std::int32_t wanted, const Identity& who) {
  if (acl == nullptr) return true;
  return std::any_of(acl->begin(), acl->end(), [&](const AclEntry& entry) {
    if ((entry.permissions & wanted) == 0) return false;
    if (entry.scheme == "world") return true;
    return std::find(who.names.begin(), who.names.end(), std::pair(entry.scheme, entry.id)) !=
           who.names.end();
  });
}

Result<std::shared_ptr<const Acl>> ResolveAcl(const Acl& asked, const Identity& who) {
  Acl resolved;
  for (const AclEntry& entry : asked) {
    bool is_known = (entry.scheme == "world" && entry.id == "anyone") ||
                    (entry.scheme == "digest" && IsDigestId(entry.id));
    if (entry.scheme == "auth") {
      if (who.names.empty()) return std::unexpected(Code::kInvalidAcl);
      for (const auto& [scheme, id] : who.names) resolved.push_back({entry.permissions, scheme, id});
    } else if (is_known) {
      resolved.push_back(entry);
    } else {
      return std::unexpected(Code::kInvalidAcl);
    }
  }
  if (resolved.empty()) return std::unexpected(Code::kInvalidAcl);
  if (IsOpen(resolved)) return nullptr;
  return std::make_shared<const Acl>(std::move(resolved));
}

std::string DigestId(std::string_view credentials) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned size = 0;
  EVP_Digest(credentials.data(), credentials.size(), hash.data(), &size, EVP_sha1(), nullptr);
  std::string_view user = credentials.substr(0, credentials.find(':'));
  return std::string(user) + ":" + Base64(std::string_view(reinterpret_cast<const char*>(hash.data()), size));
}

}  // namespace nodepool::zk
