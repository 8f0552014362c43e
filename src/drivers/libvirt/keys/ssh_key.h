#pragma once

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

}  // namespace nodepool::drivers::libvirt
