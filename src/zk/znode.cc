#include "zk/znode.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "zk/wire/protocol.h"

namespace nodepool::zk {

std::string_view ToString(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kSystemError:
      return "system error";
    case Code::kRuntimeInconsistency:
      return "runtime inconsistency";
    case Code::kDataInconsistency:
      return "data inconsistency";
    case Code::kConnectionLoss:
      return "connection loss";
    case Code::kMarshallingError:
      return "marshalling error";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kOperationTimeout:
      return "operation timeout";
    case Code::kBadArguments:
      return "bad arguments";
    case Code::kApiError:
      return "API error";
    case Code::kNoNode:
      return "no node";
    case Code::kNoAuth:
      return "not authorized";
    case Code::kBadVersion:
      return "bad version";
    case Code::kNoChildrenForEphemerals:
      return "no children for ephemerals";
    case Code::kNodeExists:
      return "node exists";
    case Code::kNotEmpty:
      return "not empty";
    case Code::kSessionExpired:
      return "session expired";
    case Code::kInvalidCallback:
      return "invalid callback";
    case Code::kInvalidAcl:
      return "invalid ACL";
    case Code::kAuthFailed:
      return "authentication failed";
    case Code::kSessionMoved:
      return "session moved";
    case Code::kNotReadOnly:
      return "not read only";
    case Code::kNoWatcher:
      return "no watcher";
    case Code::kQuotaExceeded:
      return "quota exceeded";
  }
  return "unknown code";
}

std::string_view ToString(SessionState state) {
  switch (state) {
    case SessionState::kConnecting:
      return "connecting";
    case SessionState::kConnected:
      return "connected";
    case SessionState::kSuspended:
      return "suspended";
    case SessionState::kLost:
      return "lost";
    case SessionState::kClosed:
      return "closed";
  }
  return "unknown state";
}

namespace {

bool IsRelative(std::string_view component) { return component == "." || component == ".."; }

bool HasOnlyProperComponents(std::string_view path) {
  std::size_t begin = 1;
  while (begin <= path.size()) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || IsRelative(component)) return false;
    begin = end + 1;
  }
  return true;
}

// ZooKeeper checks UTF-16 units: a character beyond U+FFFF is a pair of
// surrogates there and falls into the excluded range too. Requires valid UTF-8.
bool HasOnlyProperCharacters(std::string_view path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    auto byte = [&](std::size_t offset) { return static_cast<unsigned char>(path[i + offset]); };
    unsigned char lead = byte(0);
    if (lead < 0x20 || lead == 0x7F || lead >= 0xF0) return false;
    if (lead == 0xC2 && byte(1) <= 0x9F) return false;
    if (lead < 0xEE) continue;  // continuation bytes and all below U+E000
    unsigned character = (lead & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    bool is_private_use = character >= 0xE000 && character <= 0xF8FF;
    if (is_private_use || character >= 0xFFF0) return false;
  }
  return true;
}

}  // namespace

bool IsValidPath(std::string_view path) {
  if (path.empty() || path.front() != '/') return false;
  if (path.size() == 1) return true;
  return IsValidUtf8(path) && HasOnlyProperComponents(path) && HasOnlyProperCharacters(path);
}

namespace {

[[noreturn]] void Refuse(std::string_view path, std::string_view why) {
  throw Error(Verdict::kInvalid, fmt::format("znode path \"{}\" {}", Excerpt(path), why));
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void CheckComponent(std::string_view path, std::string_view component) {
  if (component.empty()) Refuse(path, "has an empty component");
  if (component == "." || component == "..") Refuse(path, "is relative: \".\" and \"..\" are not allowed");
}

}  // namespace

void CheckPath(std::string_view path, bool may_end_in_slash) {
  if (path.empty() || path[0] != '/') Refuse(path, "does not start with \"/\"");
  bool is_ascii = true;
  std::size_t start = 1;
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (IsControl(path[i])) Refuse(path, "has a control character");
    if (static_cast<unsigned char>(path[i]) >= 0x80) is_ascii = false;
    if (path[i] != '/') continue;
    CheckComponent(path, path.substr(start, i - start));
    start = i + 1;
  }
  if (!is_ascii && !IsValidUtf8(path)) Refuse(path, "is not UTF-8");
  if (start < path.size()) return CheckComponent(path, path.substr(start));
  if (path.size() > 1 && !may_end_in_slash) Refuse(path, "ends in \"/\"");
}

void CheckPaths(const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    const auto* create = std::get_if<CreateOp>(&op);
    bool may_end_in_slash = create && protocol::IsSequential(create->mode);
    std::visit([&](const auto& kind) { CheckPath(kind.path, may_end_in_slash); }, op);
    if (create && protocol::CreateOpCode(create->mode) == protocol::OpCode::kCreateTtl) {
      Refuse(create->path, "cannot be created with a time to live in a transaction");
    }
  }
}

std::string NormalizedChroot(std::string_view chroot) {
  while (chroot.ends_with('/')) chroot.remove_suffix(1);
  if (chroot.empty()) return "";
  CheckPath(chroot);
  return std::string(chroot);
}

std::optional<std::string_view> WithoutChroot(std::string_view path, std::string_view chroot) {
  if (!path.starts_with(chroot)) return std::nullopt;
  path.remove_prefix(chroot.size());
  if (path.empty()) return "/";
  if (path[0] != '/') return std::nullopt;
  return path;
}

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
