#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// A key pair as OpenSSH writes it.
struct SshKey {
  std::string private_key;  // a file's content, not encrypted
  std::string public_key;   // "ssh-ed25519 AAAA..."
};

// A new ed25519 key.
SshKey MakeSshKey();

// The public half of a private key of any type, also of an encrypted one, in OpenSSH's own format.
// Error(kInvalid): it is in another format, or damaged.
std::string PublicKeyOf(std::string_view private_key);

// The key with which the machines of a provider are logged in to: a file with the private half, which is made
// where there is none.
class ProviderKey {
 public:
  // `path` as configured; none: machines get no such key. Nothing is read or made yet.
  explicit ProviderKey(std::optional<std::string> path) : path_(std::move(path)) {}

  // Reads the file, or makes it and its folder with mode 0600 and 0700, when called first. Of several
  // processes that make it at a time one does, and all use its key. Error(kInvalid): it cannot be read or
  // made, or is not a private key; names the path.
  const std::optional<std::string>& PublicKey();

 private:
  std::optional<std::string> path_;
  std::optional<std::string> public_key_;
};

}  // namespace nodepool::drivers::libvirt
