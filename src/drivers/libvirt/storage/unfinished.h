#pragma once

#include <functional>
#include <string>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// Whether the host has the image, complete. A host that cannot be asked does not have it.
Task<bool> HasImage(Host& host, std::string image);

// Awaits make(), which makes and fills the image's volume, with a mark beside it that says that the image is
// not complete yet. What a failure leaves is removed; where that cannot be done now, the mark stays.
// kConflict: there is a mark already, of another try.
Task<> MakeImage(Host& host, std::string image, std::function<Task<>()> make);

// Deletes what there is of an image, also of one that is not complete. Nothing is success.
Task<> RemoveImage(Host& host, std::string image);

}  // namespace nodepool::drivers::libvirt
