#include "drivers/libvirt/xml/saved_memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::string_view kComplete = "LibvirtQemudSave";
constexpr std::string_view kPartial = "LibvirtQemudPart";
constexpr std::uint32_t kFormatVersion = 2;

// As libvirt writes it, in the host's byte order.
struct Header {
  char magic[16];
  std::uint32_t version;
  std::uint32_t length;  // of description and cookie
  std::uint32_t was_running;
  std::uint32_t compression;
  std::uint32_t cookie;  // where libvirt's own state begins in them; 0: there is none
  std::uint32_t unused[14];
};

[[noreturn]] void Refuse(const char* why) {
  throw Error(Verdict::kFail, fmt::format("the file of saved memory cannot be used: {}", why));
}

Header Read(std::string_view start) {
  Header header{};
  if (start.size() < sizeof(header)) Refuse("it is too short");
  std::memcpy(&header, start.data(), sizeof(header));
  std::string_view magic(header.magic, sizeof(header.magic));
  if (magic != kComplete && magic != kPartial) Refuse("libvirt did not write it");
  return header;
}

std::size_t RoomIn(const Header& header, std::string_view start) {
  if (header.version != kFormatVersion) Refuse("its version is not known");
  std::size_t room = header.cookie != 0 ? header.cookie : header.length;
  if (room > header.length || sizeof(header) + room > start.size()) Refuse("its header is damaged");
  return room;
}

}  // namespace

std::optional<std::string> DescriptionIn(std::string_view start) {
  if (start.size() < sizeof(Header)) return std::nullopt;
  Header header = Read(start);
  if (std::string_view(header.magic, sizeof(header.magic)) == kPartial) return std::nullopt;
  std::string_view room = start.substr(sizeof(header), RoomIn(header, start));
  return std::string(room.substr(0, room.find('\0')));
}

std::string WithDescription(std::string_view start, const std::string& description) {
  Header header = Read(start);
  std::size_t room = RoomIn(header, start);
  if (description.size() >= room) Refuse("the machine's description does not fit into it");
  std::string bytes(start.substr(0, sizeof(header)));
  bytes += description;
  bytes.append(room - description.size(), '\0');
  return bytes;
}

}  // namespace nodepool::drivers::libvirt
