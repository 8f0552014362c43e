#pragma once

#include <string>
#include <string_view>

#include "drivers/libvirt/xml/domain_xml.h"

namespace nodepool::drivers::libvirt {

// The description of a machine that goes on from the saved memory of another one: what the guest's kernel
// knows of its devices stays; name, UUID, metadata, first disk, console log and address are those of `clone`.
// Without blanks: not longer than `saved`. Error(kFail): `saved` does not describe such a machine.
std::string CloneXml(std::string_view saved, const NewDomain& clone);

}  // namespace nodepool::drivers::libvirt
