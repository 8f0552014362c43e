#include "drivers/libvirt/host/digest.h"

#include <array>

#include "base/encoding.h"
#include "base/error.h"

namespace nodepool::drivers::libvirt {

Digest::Digest(const std::string& algorithm) {
  const EVP_MD* method = EVP_get_digestbyname(algorithm.c_str());
  if (method == nullptr) throw Error(Verdict::kInvalid, "there is no checksum " + algorithm);
  EVP_DigestInit_ex(context_.get(), method, nullptr);
}

void Digest::Add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Digest::Hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
  return nodepool::Hex(std::string_view(reinterpret_cast<const char*>(digest.data()), length));
}

}  // namespace nodepool::drivers::libvirt
