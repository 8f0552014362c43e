#include "daemon/client_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/encoding.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "zk/server/server.h"

namespace nodepool::daemon {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 200;

[[noreturn]] void Refuse(const std::string& file, const std::string& why) {
  throw Error(
      Verdict::kInvalid,
      fmt::format("embedded-zookeeper: the secret of its clients, {}, cannot be used: {}", file, why));
}

// Under its final name the file is complete from the beginning, and never replaced.
void Make(const std::string& file) {
  using zk::server::NewPassword;
  std::string secret = Hex(NewPassword() + NewPassword()) + "\n";
  std::string unfinished = fmt::format("{}.{}", file, getpid());
  int written = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (written < 0) Refuse(file, std::strerror(errno));
  ScopeExit remove([&] {
    close(written);
    unlink(unfinished.c_str());
  });
  bool is_whole = write(written, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size());
  if (!is_whole || fsync(written) != 0) Refuse(file, std::strerror(errno));
  if (link(unfinished.c_str(), file.c_str()) != 0 && errno != EEXIST) Refuse(file, std::strerror(errno));
}

// The first bytes of the file; none: errno says why.
std::optional<std::string> Read(const std::string& file) {
  int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) return std::nullopt;
  ScopeExit close_file([&] { close(opened); });
  std::array<char, kLongest> bytes{};
  ssize_t size = read(opened, bytes.data(), bytes.size());
  if (size < 0) return std::nullopt;
  return std::string(Trim(std::string_view(bytes.data(), static_cast<std::size_t>(size))));
}

bool IsUsable(const std::string& secret) {
  return secret.size() >= kShortest && secret.size() < kLongest &&
         std::ranges::all_of(secret, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string ClientSecretFile(const config::EmbeddedZooKeeper& embedded) {
  return embedded.state_dir + "/zookeeper.secret";
}

std::string MakeClientSecret(const std::string& file) {
  std::optional<std::string> secret = Read(file);
  if (!secret && errno == ENOENT) {
    Make(file);
    secret = Read(file);
  }
  if (!secret) Refuse(file, std::strerror(errno));
  if (!IsUsable(*secret))
    Refuse(file, "it has to be one word of 16 to 199 characters; without the file the next start makes one");
  return std::move(*secret);
}

std::optional<zk::DigestAuth> ClientCredentials(const std::string& file) {
  std::optional<std::string> secret = Read(file);
  if (!secret && errno == ENOENT) return std::nullopt;
  return zk::DigestAuth{std::string(zk::server::kClientUser), secret && IsUsable(*secret) ? *secret : ""};
}

}  // namespace nodepool::daemon
