#include "drivers/libvirt/xml/saved_memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "drivers/libvirt/xml/xml.h"

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

namespace {

pugi::xml_node Child(pugi::xml_node parent, const char* name) {
  pugi::xml_node child = parent.child(name);
  if (child) return child;
  throw Error(Verdict::kFail, std::string("the description of the saved machine has no ") + name);
}

// libvirt reads the disk's chain of files from the disk itself, whose format is given.
void SetRootDisk(pugi::xml_node devices, const std::string& path) {
  pugi::xml_node disk = Child(devices, "disk");
  Child(disk, "source").attribute("file").set_value(path.c_str());
  while (disk.remove_child("backingStore")) {
  }
}

void SetConsole(pugi::xml_node devices, const std::string& path) {
  for (const char* name : {"serial", "console"}) {
    for (pugi::xml_node device : devices.children(name)) {
      if (pugi::xml_node log = device.child("log")) log.attribute("file").set_value(path.c_str());
    }
  }
}

}  // namespace

std::string CloneXml(std::string_view saved, const NewDomain& clone) {
  pugi::xml_document document;
  Parse(saved, "a saved machine", document);
  pugi::xml_node root = Child(document, "domain");
  Child(root, "name").text().set(clone.name.c_str());
  Child(root, "uuid").text().set(clone.uuid.c_str());
  Child(root, "genid").text().set(clone.uuid.c_str());
  while (root.remove_child("metadata")) {
  }
  AddMetadata(root, clone.metadata);
  pugi::xml_node devices = Child(root, "devices");
  SetRootDisk(devices, clone.root_path);
  SetConsole(devices, clone.console_path);
  Child(Child(devices, "interface"), "mac").attribute("address").set_value(clone.mac.c_str());
  std::ostringstream text;
  document.save(text, "", pugi::format_raw | pugi::format_no_declaration);
  return text.str();
}

}  // namespace nodepool::drivers::libvirt
