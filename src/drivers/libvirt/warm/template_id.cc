#include "drivers/libvirt/warm/template_id.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/machine/make_disks.h"

namespace nodepool::drivers::libvirt {

namespace {

// To be raised when templates are made otherwise.
constexpr int kTemplateVersion = 2;

// The description of a machine without what makes it differ from others.
std::string SharedDescription(const Creation& creation, const BootImage& image) {
  NewDomain domain = DescribeOnHost(creation, DomainDisks{.image = image.file});
  domain.name.clear();
  domain.uuid.clear();
  domain.metadata.clear();
  domain.mac.clear();
  return DomainXml(domain);
}

// The form of RFC 9562's version 8, for values that an application makes up.
std::string AsUuid(const std::string& hex) {
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                     hex.substr(15, 3), hex.substr(18, 12));
}

}  // namespace

MachineId TemplateFor(const Creation& creation, const BootImage& image) {
  std::vector<int> seeds;
  for (SeedFormat format : creation.label.seeds) seeds.push_back(static_cast<int>(format));
  std::string shape = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kTemplateVersion,
                                  creation.site.config->name.str(), SharedDescription(creation, image),
                                  image.modified, creation.label.disk.value_or(0), fmt::join(seeds, ","),
                                  fmt::join(KeysFor(creation), "\n"), creation.label.userdata.value_or(""));
  return {creation.host.name(), AsUuid(Sha256Hex(shape))};
}

bool IsOfTemplate(const MachineVolume& volume) { return volume.node == kWarmStart; }

}  // namespace nodepool::drivers::libvirt
