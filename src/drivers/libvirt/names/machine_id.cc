#include "drivers/libvirt/names/machine_id.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::drivers::libvirt {

namespace {

bool IsUuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  auto fits = [](char form, char c) {
    bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    return form == 'x' ? is_digit : c == form;
  };
  return std::ranges::equal(kForm, text, fits);
}

}  // namespace

std::optional<MachineId> ParseMachineId(std::string_view text) {
  std::size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos) return std::nullopt;
  std::string_view uuid = text.substr(slash + 1);
  if (!IsUuid(uuid)) return std::nullopt;
  return MachineId{std::string(text.substr(0, slash)), std::string(uuid)};
}

std::string MacAddressOf(const MachineId& id, std::size_t interface) {
  const std::string& uuid = id.uuid;
  return fmt::format("52:54:{:02x}:{}:{}:{}", interface & 0xff, uuid.substr(0, 2), uuid.substr(2, 2),
                     uuid.substr(4, 2));
}

}  // namespace nodepool::drivers::libvirt
