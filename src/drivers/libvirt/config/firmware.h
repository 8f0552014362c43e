#pragma once

namespace nodepool::drivers::libvirt {

// What a machine starts with, before the boot loader of its disk (driver-libvirt.md 7.3).
enum class Firmware { kBios, kUefi, kUefiSecure };

}  // namespace nodepool::drivers::libvirt
