#pragma once

#include <functional>
#include <string>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// Whether the host has the uploaded image, complete. A host that cannot be asked does not have it.
Task<bool> HasImage(Host& host, std::string image);

// Makes the volume, `length` bytes long, and awaits fill(), with a mark beside it that says that the image is
// not complete yet. The mark stays when that fails. kConflict: there is a mark already, of another try.
Task<> MakeImage(Host& host, std::string image, std::uint64_t length, std::function<Task<>()> fill);

// Deletes what there is of an image, also of one that is not complete. Nothing is success.
Task<> RemoveImage(Host& host, std::string image);

}  // namespace nodepool::drivers::libvirt
