#include "drivers/libvirt/machine/make_disks.h"

#include <fmt/format.h>

#include <algorithm>

#include "drivers/libvirt/seed/iso_image.h"
#include "drivers/libvirt/seed/seed_files.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

namespace {

// Its name has the machine's UUID: what is there is of an earlier try, whose answer was lost.
Task<std::string> MakeAnew(Hypervisor& host, NewVolume volume) {
  Outcome<std::string> made = co_await Attempt(host.CreateVolume(volume));
  if (made) co_return std::move(*made);
  if (!FailedWith(made, Verdict::kConflict)) made.error().Rethrow();
  co_await host.DeleteVolume(volume.name);
  std::string path = co_await host.CreateVolume(std::move(volume));
  co_return path;
}

Task<std::string> MakeRoot(Creation& creation, const BootImage& image) {
  std::uint64_t capacity =
      creation.label.disk ? std::uint64_t(*creation.label.disk) * kGibibyte : image.capacity;
  if (capacity < image.capacity) {
    throw Error(Verdict::kInvalid,
                fmt::format("label {} has a disk of {} GiB; its image has {:.1f} GiB", creation.label.name,
                            *creation.label.disk, double(image.capacity) / double(kGibibyte)));
  }
  NewVolume volume{creation.VolumeName(kRootPart), "qcow2", capacity, image.file};
  co_return co_await MakeVolume(creation, std::move(volume));
}

Task<std::string> MakeSeedDisk(Creation& creation, SeedFormat format) {
  SeedContent content{creation.id.uuid,  creation.parameters.hostname, MacAddressOf(creation.id),
                      KeysFor(creation), creation.label.userdata,      creation.host_key};
  Seed seed = MakeSeed(format, content);
  std::string bytes = IsoImage(seed.label, seed.files);
  std::string name = creation.VolumeName(PartOf(format));
  NewVolume volume{.name = name, .capacity = bytes.size(), .is_secret = true};
  std::string path = co_await MakeVolume(creation, std::move(volume));
  auto write = [&name, &bytes](Hypervisor& host) { return host.WriteVolume(name, bytes); };
  co_await creation.Do(write);
  co_return path;
}

// The firmware's variables lie beside the disk under a volume's name, so they are deleted like one.
std::string VariablesBeside(const Creation& creation, const std::string& root_path) {
  if (creation.label.firmware == Firmware::kBios) return "";
  return root_path.substr(0, root_path.rfind('/') + 1) + creation.VolumeName(kVariablesPart);
}

}  // namespace

Task<std::string> MakeVolume(Creation& creation, NewVolume volume) {
  auto make = [&volume](Hypervisor& host) { return MakeAnew(host, volume); };
  co_return co_await creation.Do(make);
}

std::vector<std::string> KeysFor(const Creation& creation) {
  std::vector<std::string> keys = creation.label.authorized_keys;
  const std::optional<std::string>& own = creation.site.key.PublicKey();
  if (own && std::ranges::find(keys, *own) == keys.end()) keys.push_back(*own);
  return keys;
}

// Made beforehand, so that the log that libvirt writes there is a volume that can be read.
Task<std::string> MakeConsole(Creation& creation) {
  NewVolume volume{.name = creation.VolumeName(kConsolePart)};
  co_return co_await MakeVolume(creation, std::move(volume));
}

Task<DomainDisks> MakeDisks(Creation& creation) {
  auto find = [&creation](Hypervisor& host) {
    return FindBootImage(host, *creation.site.config, creation.parameters);
  };
  BootImage image = co_await creation.host.AcrossLosses(find);
  DomainDisks disks;
  disks.image = image.file;
  disks.root_path = co_await MakeRoot(creation, image);
  disks.variables_path = VariablesBeside(creation, disks.root_path);
  for (SeedFormat format : creation.label.seeds) {
    std::string path = co_await MakeSeedDisk(creation, format);
    disks.seed_paths.push_back(std::move(path));
  }
  disks.console_path = co_await MakeConsole(creation);
  co_return disks;
}

}  // namespace nodepool::drivers::libvirt
