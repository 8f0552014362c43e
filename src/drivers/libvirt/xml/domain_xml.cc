#include "drivers/libvirt/xml/domain_xml.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr const char* kNamespace = "urn:nodepool:machine:1";

void AddCpu(pugi::xml_node root, const NewDomain& domain) {
  std::string model = domain.cpu.value_or(domain.uses_kvm ? "host-passthrough" : "maximum");
  pugi::xml_node cpu = root.append_child("cpu");
  if (model == "host-passthrough" || model == "host-model" || model == "maximum") {
    With(cpu, {{"mode", model}});
  } else {
    With(cpu, {{"mode", "custom"}, {"match", "exact"}});
    With(Add(cpu, "model", model), {{"fallback", "forbid"}});
  }
}

void AddKernel(pugi::xml_node os, const DirectKernel& direct) {
  Add(os, "kernel", direct.kernel);
  if (!direct.initrd.empty()) Add(os, "initrd", direct.initrd);
  if (!direct.arguments.empty()) Add(os, "cmdline", direct.arguments);
}

// libvirt chooses the files by QEMU's descriptions of them.
void AddFirmware(pugi::xml_node os, const NewDomain& domain) {
  if (domain.platform.firmware == Firmware::kBios) return;
  With(os, {{"firmware", "efi"}});
  bool is_secure = domain.platform.firmware == Firmware::kUefiSecure;
  With(os.append_child("firmware").append_child("feature"),
       {{"enabled", is_secure ? "yes" : "no"}, {"name", "secure-boot"}});
  Add(os, "nvram", domain.variables_path);
}

// Of a PC, which other computers do not have.
void AddTimers(pugi::xml_node clock) {
  With(clock.append_child("timer"), {{"name", "rtc"}, {"tickpolicy", "catchup"}});
  With(clock.append_child("timer"), {{"name", "hpet"}, {"present", "no"}});
}

void AddPlatform(pugi::xml_node root, const NewDomain& domain) {
  With(Add(root, "memory", std::to_string(domain.memory)), {{"unit", "MiB"}});
  Add(root, "vcpu", std::to_string(domain.vcpus));
  pugi::xml_node os = root.append_child("os");
  With(Add(os, "type", "hvm"),
       {{"arch", domain.platform.architecture}, {"machine", domain.platform.machine}});
  AddFirmware(os, domain);
  if (domain.kernel) AddKernel(os, *domain.kernel);
  pugi::xml_node features = root.append_child("features");
  features.append_child("acpi");
  if (domain.platform.is_x86()) features.append_child("apic");
  AddCpu(root, domain);
  pugi::xml_node clock = With(root.append_child("clock"), {{"offset", "utc"}});
  if (domain.platform.is_x86()) AddTimers(clock);
  Add(root, "on_poweroff", "destroy");
  Add(root, "on_reboot", "restart");
  Add(root, "on_crash", "destroy");
}

// "vda", or as the bus calls it.
std::string DeviceName(const std::string& bus, int index) {
  return std::string(bus == "virtio" ? "vd" : "sd") + static_cast<char>('a' + index);
}

// The whole chain of files is spelled out: libvirt would open them to find out otherwise.
void AddRootDisk(pugi::xml_node devices, const NewDomain& domain) {
  pugi::xml_node disk = With(devices.append_child("disk"), {{"type", "file"}, {"device", "disk"}});
  With(disk.append_child("driver"),
       {{"name", "qemu"}, {"type", "qcow2"}, {"cache", "unsafe"}, {"discard", "unmap"}});
  With(disk.append_child("source"), {{"file", domain.root_path}});
  pugi::xml_node backing = With(disk.append_child("backingStore"), {{"type", "file"}});
  With(backing.append_child("format"), {{"type", domain.image.format}});
  With(backing.append_child("source"), {{"file", domain.image.path}});
  backing.append_child("backingStore");
  With(disk.append_child("target"), {{"dev", DeviceName(domain.disk_bus, 0)}, {"bus", domain.disk_bus}});
}

// A disk, not a CD-ROM, whose drivers kernels for clouds may lack.
void AddSeedDisk(pugi::xml_node devices, const NewDomain& domain, int index) {
  pugi::xml_node disk = With(devices.append_child("disk"), {{"type", "file"}, {"device", "disk"}});
  With(disk.append_child("driver"), {{"name", "qemu"}, {"type", "raw"}});
  With(disk.append_child("source"), {{"file", domain.seed_paths[static_cast<std::size_t>(index)]}});
  disk.append_child("backingStore");
  With(disk.append_child("target"),
       {{"dev", DeviceName(domain.disk_bus, index + 1)}, {"bus", domain.disk_bus}});
  disk.append_child("readonly");
}

void AddInterface(pugi::xml_node devices, const NewDomain& domain, const std::string& mac,
                  const MachineNetwork& network) {
  bool is_bridge = network.kind == MachineNetwork::Kind::kBridge;
  const char* type = is_bridge ? "bridge" : "network";
  pugi::xml_node interface = With(devices.append_child("interface"), {{"type", type}});
  With(interface.append_child("mac"), {{"address", mac}});
  With(interface.append_child("source"), {{type, network.name}});
  With(interface.append_child("model"), {{"type", "virtio"}});
  if (domain.security_filter) {
    With(interface.append_child("filterref"), {{"filter", *domain.security_filter}});
  }
}

// Of QEMU's machines only the old PC has plain PCI at its root.
const char* RootBus(const std::string& machine) {
  bool is_old_pc = machine.starts_with("pc") && machine.find("q35") == std::string::npos;
  return is_old_pc ? "pci.0" : "pcie.0";
}

// libvirt forwards ports only with a helper that hosts may lack (passt), so QEMU is asked directly.
void AddForwardedPort(pugi::xml_node root, const NewDomain& domain) {
  const ForwardedPort& forwarded = *domain.forwarded;
  const std::string words[] = {"-netdev",
                               fmt::format("user,id=nodepool,hostfwd=tcp:{}:{}-:{}", forwarded.bind_address,
                                           forwarded.port, forwarded.guest_port),
                               "-device",
                               fmt::format("virtio-net-pci,netdev=nodepool,mac={},bus={},addr=0x10",
                                           domain.mac, RootBus(domain.platform.machine))};
  With(root, {{"xmlns:qemu", "http://libvirt.org/schemas/domain/qemu/1.0"}});
  pugi::xml_node command = root.append_child("qemu:commandline");
  for (const std::string& word : words) With(command.append_child("qemu:arg"), {{"value", word}});
}

void AddDevices(pugi::xml_node root, const NewDomain& domain) {
  pugi::xml_node devices = root.append_child("devices");
  AddRootDisk(devices, domain);
  for (int i = 0; i < static_cast<int>(domain.seed_paths.size()); ++i) AddSeedDisk(devices, domain, i);
  if (domain.disk_bus == "scsi") {
    With(devices.append_child("controller"), {{"type", "scsi"}, {"model", "virtio-scsi"}});
  }
  if (!domain.network.is_user()) AddInterface(devices, domain, domain.mac, domain.network);
  for (const NetworkInterface& more : domain.more_interfaces) {
    AddInterface(devices, domain, more.mac, {MachineNetwork::Kind::kNamed, more.network});
  }
  pugi::xml_node serial = With(devices.append_child("serial"), {{"type", "pty"}});
  With(serial.append_child("log"), {{"file", domain.console_path}, {"append", "off"}});
  With(serial.append_child("target"), {{"port", "0"}});
  pugi::xml_node agent = With(devices.append_child("channel"), {{"type", "unix"}});
  With(agent.append_child("target"), {{"type", "virtio"}, {"name", "org.qemu.guest_agent.0"}});
  pugi::xml_node random = With(devices.append_child("rng"), {{"model", "virtio"}});
  With(Add(random, "backend", "/dev/urandom"), {{"model", "random"}});
  pugi::xml_node video = devices.append_child("video");
  With(video.append_child("model"), {{"type", "none"}});
  With(devices.append_child("memballoon"), {{"model", "none"}});
}

// The tag without its prefix, which whoever wrote the metadata was free to choose.
bool IsNamed(pugi::xml_node node, const char* name) {
  const char* colon = std::strchr(node.name(), ':');
  return std::strcmp(colon == nullptr ? node.name() : colon + 1, name) == 0;
}

bool HasOurNamespace(pugi::xml_node node) {
  for (pugi::xml_attribute attribute : node.attributes()) {
    if (std::strcmp(attribute.value(), kNamespace) == 0) return true;
  }
  return false;
}

std::map<std::string, std::string> MetadataIn(pugi::xml_node root) {
  std::map<std::string, std::string> metadata;
  for (pugi::xml_node machine : root.child("metadata").children()) {
    if (!IsNamed(machine, "machine") || !HasOurNamespace(machine)) continue;
    for (pugi::xml_node property : machine.children()) {
      if (IsNamed(property, "property"))
        metadata[property.attribute("name").value()] = property.child_value();
    }
  }
  return metadata;
}

// libvirt writes KiB, whatever it was given.
double MebibytesIn(pugi::xml_node memory) {
  std::string unit = memory.attribute("unit").as_string("KiB");
  double amount = memory.text().as_double();
  if (unit == "GiB") return amount * 1024;
  return unit == "MiB" ? amount : amount / 1024;
}

}  // namespace

void AddMetadata(pugi::xml_node root, const std::map<std::string, std::string>& metadata) {
  pugi::xml_node machine = root.append_child("metadata").append_child("np:machine");
  With(machine, {{"xmlns:np", kNamespace}});
  for (const auto& [name, value] : metadata) With(Add(machine, "np:property", value), {{"name", name}});
}

std::string DomainXml(const NewDomain& domain) {
  pugi::xml_document document;
  pugi::xml_node root = With(document.append_child("domain"), {{"type", domain.uses_kvm ? "kvm" : "qemu"}});
  Add(root, "name", domain.name);
  Add(root, "uuid", domain.uuid);
  if (domain.has_generation) root.append_child("genid");
  AddMetadata(root, domain.metadata);
  AddPlatform(root, domain);
  AddDevices(root, domain);
  if (domain.forwarded) AddForwardedPort(root, domain);
  return TextOf(document);
}

DomainInfo ParseDomain(std::string_view xml) {
  pugi::xml_document document;
  Parse(xml, "a domain", document);
  pugi::xml_node root = document.child("domain");
  DomainInfo domain;
  domain.uuid = root.child_value("uuid");
  if (domain.uuid.empty()) throw Error(Verdict::kFail, "the host's description of a domain has no UUID");
  domain.name = root.child_value("name");
  domain.metadata = MetadataIn(root);
  domain.vcpus = root.child("vcpu").text().as_int();
  domain.memory = MebibytesIn(root.child("memory"));
  return domain;
}

std::vector<std::string> MacAddressesIn(std::string_view domain_xml) {
  pugi::xml_document document;
  Parse(domain_xml, "a domain", document);
  std::vector<std::string> addresses;
  for (pugi::xml_node interface : document.child("domain").child("devices").children("interface")) {
    addresses.emplace_back(interface.child("mac").attribute("address").value());
  }
  return addresses;
}

}  // namespace nodepool::drivers::libvirt
