#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt {

// What a machine's disk is backed by.
struct BootImage {
  DiskFile file;
  std::uint64_t capacity = 0;  // virtual size, bytes; 0: not known
  std::int64_t modified = 0;   // seconds since 1970; 0: not known
};

// The virtual size of a volume used as `format`, bytes. Of a raw one its length: the capacity that libvirt
// reports may be from what looks like a header in it.
std::uint64_t SizeOfDisk(const VolumeInfo& volume, const std::string& format);

// The volume of the label's image on every host; nullopt: the image is a file.
std::optional<std::string> VolumeOf(const LibvirtConfig& config, const driver::LabelConfig& label,
                                    const std::optional<std::string>& image_external_id);

// The label's image as the host has it. kNotFound: it does not have it. kInvalid: a machine must not be made
// from it, since it has a backing file of its own or an unknown format.
Task<BootImage> FindBootImage(Hypervisor& host, const LibvirtConfig& config,
                              const driver::cloud::CreateParameters& parameters);

}  // namespace nodepool::drivers::libvirt
