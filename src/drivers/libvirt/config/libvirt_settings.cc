#include "drivers/libvirt/config/libvirt_settings.h"

#include <algorithm>

#include "base/text.h"
#include "driver/cloud/section.h"
#include "drivers/libvirt/config/host_settings.h"
#include "drivers/libvirt_schema.h"

namespace nodepool::drivers {

const Schema& LibvirtSchema() {
  static const Schema schema = libvirt::LibvirtSettings().ToSchema();
  return schema;
}

}  // namespace nodepool::drivers

namespace nodepool::drivers::libvirt {

namespace cloud = driver::cloud;

namespace {

const Words<std::string>& Formats() {
  static const Words<std::string> words = {{"qcow2", "qcow2"}, {"raw", "raw"}};
  return words;
}

Schema BoolOrText() { return Schema::OneOf({Schema::Bool(), Schema::String()}); }

// --- Machines -------------------------------------------------------------------

// The keys of provider, pool and label, each once.
template <class Owner>
config::Binding<Owner> AuthorizedKeys(const char* help, std::vector<std::string> Owner::*member) {
  return {Setting("authorized-keys", Schema::List(Schema::String()), help),
          [member](const Section& section, const std::string& key, Owner& owner) {
            for (std::string& text : section.TextList(key)) {
              bool is_new = std::ranges::find(owner.*member, text) == (owner.*member).end();
              if (is_new) (owner.*member).push_back(std::move(text));
            }
          }};
}

void ReadMachineNetwork(const Section& section, const std::string& key, LibvirtLabel& label) {
  std::optional<MachineNetwork> network = ReadNetwork(section, key);
  if (!network) return;
  label.network = std::move(network);
  label.more_networks.clear();
  if (section.IsMapping(key)) return;
  std::vector<std::string> names = section.TextList(key);
  label.more_networks.assign(names.begin() + 1, names.end());
}

void ReadFilter(const Section& section, const std::string& key, LibvirtLabel& label) {
  if (!section.IsGiven(key)) return;
  label.security_filter = section.Text(key);
  if (Lower(*label.security_filter) == "true") label.security_filter = kDefaultFilter;
  if (Lower(*label.security_filter) == "false") label.security_filter.reset();
}

// Of labels, and of pools as defaults for them.
Bindings<LibvirtLabel> MachineSettings() {
  return {
      {Setting("network", LabelNetworkSchema(),
               "Another network than the host's: the name of a libvirt network, a bridge, or QEMU's own. Or "
               "names "
               "of several libvirt networks, an interface each; machines are reached in the first."),
       ReadMachineNetwork},
      {Setting("security-filter", BoolOrText(), "libvirt's network filter for the machines; false: none."),
       ReadFilter},
      AuthorizedKeys("More public keys for the machines.", &LibvirtLabel::authorized_keys),
      {Setting("userdata", "User data for cloud-init.").Secret(), &LibvirtLabel::userdata},
  };
}

Schema Size() { return Schema::Int().AtLeast(1); }

}  // namespace

const Bindings<LibvirtCloudImage>& LibvirtCloudImageSettings() {
  using Image = LibvirtCloudImage;
  static const Bindings<Image> settings =
      Bindings<Image>{
          {Setting("name", "What labels call the image.").Required(), &Image::name},
          {Setting("volume", "A volume of the storage pool; default: the image's name."), &Image::volume},
          {Setting("path", "A file on the host; it is never written or deleted."), &Image::path},
          {Setting("url", "Where the image is fetched from, once for each host; needs checksum."),
           &Image::url},
          {Setting("checksum", "sha256: or sha512: and the digits of the image's checksum."),
           &Image::checksum},
          {Setting("format", "Needed with path; default: as the volume says, with url qcow2."),
           &Image::format, Formats()},
          {Setting("kernel", "A kernel of the host to start in place of the boot loader's."), &Image::direct,
           &DirectKernel::kernel},
          {Setting("initrd", "The initrd beside the kernel."), &Image::direct, &DirectKernel::initrd},
          {Setting("kernel-args", "The command line of the kernel."), &Image::direct,
           &DirectKernel::arguments},
      }
          .With(&Image::connection, LoginSettings())
          .Exclusive({"volume", "path", "url"});
  return settings;
}

const Bindings<LibvirtLabel>& LibvirtLabelSettings() {
  using Label = LibvirtLabel;
  static const Bindings<Label> settings =
      Bindings<Label>(cloud::LabelSettings())
          .With({
              {Setting("vcpus", Size(), "Virtual CPUs."), &Label::vcpus},
              {Setting("memory", Size(), "Memory.").Unit("MiB"), &Label::memory},
              {Setting("disk", Size(), "Size of the disk; default: the image's virtual size.").Unit("GiB"),
               &Label::disk},
              {Setting("machine",
                       "QEMU's machine type; pc for old images. Default: q35; on hosts of arm64 virt."),
               &Label::machine},
              {Setting(
                   "cpu",
                   "host-passthrough, host-model, maximum, or a model's name; default: host-passthrough with "
                   "kvm, maximum without."),
               &Label::cpu},
              {Setting("firmware", "Only bios with warm-start. Default: bios; on hosts of arm64 uefi."),
               &Label::firmware,
               Words<Firmware>{{"bios", Firmware::kBios},
                               {"uefi", Firmware::kUefi},
                               {"uefi-secure", Firmware::kUefiSecure}}},
              {Setting("disk-bus", "What the disk is attached to."), &Label::disk_bus,
               Words<std::string>{{"virtio", "virtio"}, {"scsi", "scsi"}, {"sata", "sata"}}},
              {Setting("seed", "How keys and user data reach the machine."), &Label::seeds,
               Words<std::vector<SeedFormat>>{{"nocloud", {SeedFormat::kNoCloud}},
                                              {"config-drive", {SeedFormat::kConfigDrive}},
                                              {"both", {SeedFormat::kNoCloud, SeedFormat::kConfigDrive}},
                                              {"none", {}}}},
              {Setting("warm-start",
                       "Machines go on from the saved memory of one that has booted, each with an identity "
                       "of its "
                       "own."),
               &Label::is_started_warm},
              {Setting("host", "Only this host."), &Label::host},
          })
          .With(MachineSettings())
          .RequireOneOf({"diskimage", "cloud-image"});
  return settings;
}

const Bindings<LibvirtPool>& LibvirtPoolSettings() {
  static const Bindings<LibvirtPool> settings =
      Bindings<LibvirtPool>(cloud::CloudPoolSettings())
          .With({
              {Setting("hosts", "Only these hosts; default: all."), &LibvirtPool::hosts},
              Setting("labels", Schema::List(LibvirtLabelSettings().ToSchema()), "The labels offered here."),
          })
          .With(&LibvirtPool::label_defaults, MachineSettings());
  return settings;
}

const Bindings<LibvirtConfig>& LibvirtSettings() {
  using Config = LibvirtConfig;
  static const Bindings<Config> settings =
      Bindings<Config>{
          {Setting("uri", "The libvirt connection of the only host.").Secret(), &Config::uri},
          Setting("hosts", Schema::List(HostSettings().ToSchema()),
                  "Hosts; default: one named local, at uri."),
          AuthorizedKeys("Public keys for every machine.", &Config::authorized_keys),
          {Setting("key", BoolOrText(),
                   "File with the private SSH key whose public half every machine gets; made where there is "
                   "none. "
                   "Default where there are no authorized-keys: libvirt/<provider> in the state-dir; false: "
                   "none."),
           &Config::key},
          {Setting("host-keys",
                   "scan: the keys that a machine shows first are its keys; inject: each machine is given "
                   "one, and "
                   "has to show it, which needs cloud-init."),
           &Config::has_own_host_keys, Words<bool>{{"scan", false}, {"inject", true}}},
          {Setting("placement",
                   "spread: the host that is used least; pack: the one used most that has room."),
           &Config::placement, Words<Placement>{{"spread", Placement::kSpread}, {"pack", Placement::kPack}}},
          {Setting("same-host", Schema::OneOf({Schema::Among({"require", "prefer", "no"}), Schema::Bool()}),
                   "Whether the nodes of one request are made on one host. Default: no where they are on a "
                   "bridge, "
                   "else require, since machines on other networks reach only those of their host."),
           &Config::same_host,
           Words<SameHost>{{"require", SameHost::kRequire},
                           {"prefer", SameHost::kPrefer},
                           {"no", SameHost::kNo},
                           {"false", SameHost::kNo}}},
          {Setting("call-timeout",
                   "Time for one call of libvirt; one that starts a machine has four times that."),
           &Config::call_timeout},
          {Setting(
               "boot-timeout",
               "Time for the host key scan of a new node; unless it is set, 300 seconds where machines run "
               "without KVM."),
           &Config::boot_timeout},
          cloud::LaunchTimeout(),
          cloud::LaunchRetries(),
          Setting("cloud-images", Schema::List(LibvirtCloudImageSettings().ToSchema()),
                  "Images that exist on the hosts."),
          Setting("diskimages", Schema::List(cloud::DiskImageSettings().ToSchema()),
                  "Images of the builder to upload here."),
          {Setting("image-format", "Format of uploads."), &Config::image_format, Formats()},
          Setting("pools", Schema::List(LibvirtPoolSettings().ToSchema()), "Groups of nodes."),
      }
          .Declare(HostDefaults())
          .With(cloud::UploadSettings())
          .Exclusive({"uri", "hosts"});
  return settings;
}

}  // namespace nodepool::drivers::libvirt
