#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "drivers/libvirt/xml/domain_xml.h"

namespace nodepool::drivers::libvirt {

// A file that libvirt has saved a machine's memory to begins with a header and the machine's description, for
// which it keeps a fixed room; QEMU's own data follow. libvirt does not restore a machine under another name
// or UUID, so the description is replaced in the file (driver-libvirt.md 6.2).

// The description ends within so many bytes of the file's start.
inline constexpr std::size_t kMostOfSavedMemory = std::size_t{1} << 20;

// The description in the file that starts so. nullopt: the file is not complete. Error(kFail): it is not one
// of libvirt's, or of a version that is not known.
std::optional<std::string> DescriptionIn(std::string_view start);

// The first bytes of the file with another description, to be written over the old ones. Error(kFail): it is
// longer than the room for it.
std::string WithDescription(std::string_view start, const std::string& description);

// The description of a machine that goes on from the saved memory of another one: what the guest's kernel
// knows of its devices stays; name, UUID, metadata, first disk, console log and address are those of `clone`.
// Without blanks: not longer than `saved`. Error(kFail): `saved` does not describe such a machine.
std::string CloneXml(std::string_view saved, const NewDomain& clone);

}  // namespace nodepool::drivers::libvirt
