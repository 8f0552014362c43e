#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/libvirt/config/libvirt_config.h"

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

// What a machine learns from its seed disks. Everybody in the machine can read it.
struct SeedContent {
  std::string uuid;
  std::string hostname;
  std::string mac;
  std::vector<std::string> authorized_keys;
  std::optional<std::string> userdata;  // verbatim; none: a #cloud-config with the keys
  std::optional<SshKey> host_key;       // none: the machine makes its own
};

// A disk's label and files, by path.
struct Seed {
  std::string label;
  std::map<std::string, std::string> files;
};

Seed MakeSeed(SeedFormat format, const SeedContent& content);

// The last field of the name of a volume with such a seed.
const char* PartOf(SeedFormat format);

// The bytes of an ISO 9660 image (with Rock Ridge and Joliet names) that contains `files`, by path, readable
// by everybody. The label is kept as it is, also in lower case.
std::string IsoImage(const std::string& label, const std::map<std::string, std::string>& files);

}  // namespace nodepool::drivers::libvirt
