#include "drivers/libvirt/xml/xml.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::drivers::libvirt {

std::string TextOf(const pugi::xml_document& document) {
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
  return text.str();
}

void Parse(std::string_view text, const char* what, pugi::xml_document& document) {
  pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (result) return;
  throw Error(Verdict::kFail, fmt::format("the host's description of {} is not XML ({} at byte {}): {}", what,
                                          result.description(), result.offset, Excerpt(text)));
}

std::string VolumeXml(const NewVolume& volume) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("volume");
  Add(root, "name", volume.name);
  With(Add(root, "capacity", std::to_string(volume.capacity)), {{"unit", "bytes"}});
  Add(root, "allocation", "0");
  pugi::xml_node target = root.append_child("target");
  With(target.append_child("format"), {{"type", volume.format}});
  if (volume.is_secret) Add(target.append_child("permissions"), "mode", "0600");
  if (volume.backing) {
    pugi::xml_node backing = root.append_child("backingStore");
    Add(backing, "path", volume.backing->path);
    With(backing.append_child("format"), {{"type", volume.backing->format}});
  }
  return TextOf(document);
}

VolumeInfo ParseVolume(std::string_view xml) {
  pugi::xml_document document;
  Parse(xml, "a volume", document);
  pugi::xml_node root = document.child("volume");
  VolumeInfo volume;
  volume.name = root.child_value("name");
  if (volume.name.empty()) throw Error(Verdict::kFail, "the host's description of a volume has no name");
  pugi::xml_node target = root.child("target");
  volume.path = target.child_value("path");
  volume.format = target.child("format").attribute("type").value();
  volume.capacity = root.child("capacity").text().as_ullong();
  volume.allocation = root.child("allocation").text().as_ullong();
  volume.length = root.child("physical").text().as_ullong();
  volume.backing_path = root.child("backingStore").child_value("path");
  volume.modified = static_cast<std::int64_t>(target.child("timestamps").child("mtime").text().as_double());
  return volume;
}

std::string PoolXml(const std::string& name, const std::string& path) {
  pugi::xml_document document;
  pugi::xml_node root = With(document.append_child("pool"), {{"type", "dir"}});
  Add(root, "name", name);
  Add(root.append_child("target"), "path", path);
  return TextOf(document);
}

std::string SharedStorageIn(std::string_view pool_xml) {
  pugi::xml_document document;
  Parse(pool_xml, "a storage pool", document);
  pugi::xml_node pool = document.child("pool");
  if (std::string_view(pool.attribute("type").value()) != "netfs") return "";
  pugi::xml_node source = pool.child("source");
  return fmt::format("netfs {}:{}", source.child("host").attribute("name").value(),
                     source.child("dir").attribute("path").value());
}

namespace {

// A machine's lease outlives it, so a range has to hold all machines of one lease time.
constexpr const char* kLeaseMinutes = "10";

constexpr const char* kDnsmasq = "http://libvirt.org/schemas/network/dnsmasq/1.0";

using boost::asio::ip::address_v4;

void AddAddresses(pugi::xml_node root, const boost::asio::ip::network_v4& subnet) {
  address_v4 host(subnet.network().to_uint() + 1);
  address_v4 first_machine(host.to_uint() + 1);
  address_v4 last_machine(subnet.broadcast().to_uint() - 1);
  pugi::xml_node ip = With(root.append_child("ip"),
                           {{"address", host.to_string()}, {"netmask", subnet.netmask().to_string()}});
  pugi::xml_node range = With(ip.append_child("dhcp").append_child("range"),
                              {{"start", first_machine.to_string()}, {"end", last_machine.to_string()}});
  With(range.append_child("lease"), {{"expiry", kLeaseMinutes}, {"unit", "minutes"}});
}

// The DHCP server would wait three seconds before each new lease for an answer from its address; nobody else
// gives out the addresses of this network.
void AddServerOptions(pugi::xml_node root) {
  With(root, {{"xmlns:dnsmasq", kDnsmasq}});
  pugi::xml_node options = root.append_child("dnsmasq:options");
  With(options.append_child("dnsmasq:option"), {{"value", "no-ping"}});
}

// 0: not an IPv4 range.
std::uint64_t SizeOf(pugi::xml_node range) {
  boost::system::error_code fault;
  address_v4 first = boost::asio::ip::make_address_v4(range.attribute("start").value(), fault);
  if (fault) return 0;
  address_v4 last = boost::asio::ip::make_address_v4(range.attribute("end").value(), fault);
  return fault || last < first ? 0 : std::uint64_t{last.to_uint()} - first.to_uint() + 1;
}

}  // namespace

std::uint64_t LeaseRangeIn(std::string_view network_xml) {
  pugi::xml_document document;
  Parse(network_xml, "a network", document);
  std::uint64_t size = 0;
  for (pugi::xml_node ip : document.child("network").children("ip")) {
    for (pugi::xml_node range : ip.child("dhcp").children("range")) size += SizeOf(range);
  }
  return size;
}

std::string NetworkXml(const NewNetwork& network) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("network");
  Add(root, "name", network.name);
  With(root.append_child("forward"), {{"mode", "nat"}});
  With(root.append_child("bridge"), {{"stp", "off"}, {"delay", "0"}});
  if (network.is_isolated) With(root.append_child("port"), {{"isolated", "yes"}});
  AddAddresses(root, network.subnet);
  AddServerOptions(root);
  return TextOf(document);
}

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

namespace {

constexpr std::string_view kComplete = "LibvirtQemudSave";
constexpr std::string_view kPartial = "LibvirtQemudPart";
constexpr std::uint32_t kFormatVersion = 2;

// As libvirt writes it, in the host's byte order.
struct Header {
  char magic[16];
  std::uint32_t version;
  std::uint32_t length;  // of description and cookie
  std::uint32_t was_running;
  std::uint32_t compression;
  std::uint32_t cookie;  // where libvirt's own state begins in them; 0: there is none
  std::uint32_t unused[14];
};

[[noreturn]] void Refuse(const char* why) {
  throw Error(Verdict::kFail, fmt::format("the file of saved memory cannot be used: {}", why));
}

Header Read(std::string_view start) {
  Header header{};
  if (start.size() < sizeof(header)) Refuse("it is too short");
  std::memcpy(&header, start.data(), sizeof(header));
  std::string_view magic(header.magic, sizeof(header.magic));
  if (magic != kComplete && magic != kPartial) Refuse("libvirt did not write it");
  return header;
}

std::size_t RoomIn(const Header& header, std::string_view start) {
  if (header.version != kFormatVersion) Refuse("its version is not known");
  std::size_t room = header.cookie != 0 ? header.cookie : header.length;
  if (room > header.length || sizeof(header) + room > start.size()) Refuse("its header is damaged");
  return room;
}

}  // namespace

std::optional<std::string> DescriptionIn(std::string_view start) {
  if (start.size() < sizeof(Header)) return std::nullopt;
  Header header = Read(start);
  if (std::string_view(header.magic, sizeof(header.magic)) == kPartial) return std::nullopt;
  std::string_view room = start.substr(sizeof(header), RoomIn(header, start));
  return std::string(room.substr(0, room.find('\0')));
}

std::string WithDescription(std::string_view start, const std::string& description) {
  Header header = Read(start);
  std::size_t room = RoomIn(header, start);
  if (description.size() >= room) Refuse("the machine's description does not fit into it");
  std::string bytes(start.substr(0, sizeof(header)));
  bytes += description;
  bytes.append(room - description.size(), '\0');
  return bytes;
}

namespace {

pugi::xml_node Child(pugi::xml_node parent, const char* name) {
  pugi::xml_node child = parent.child(name);
  if (child) return child;
  throw Error(Verdict::kFail, std::string("the description of the saved machine has no ") + name);
}

// libvirt reads the disk's chain of files from the disk itself, whose format is given.
void SetRootDisk(pugi::xml_node devices, const std::string& path) {
  pugi::xml_node disk = Child(devices, "disk");
  Child(disk, "source").attribute("file").set_value(path.c_str());
  while (disk.remove_child("backingStore")) {
  }
}

void SetConsole(pugi::xml_node devices, const std::string& path) {
  for (const char* name : {"serial", "console"}) {
    for (pugi::xml_node device : devices.children(name)) {
      if (pugi::xml_node log = device.child("log")) log.attribute("file").set_value(path.c_str());
    }
  }
}

}  // namespace

std::string CloneXml(std::string_view saved, const NewDomain& clone) {
  pugi::xml_document document;
  Parse(saved, "a saved machine", document);
  pugi::xml_node root = Child(document, "domain");
  Child(root, "name").text().set(clone.name.c_str());
  Child(root, "uuid").text().set(clone.uuid.c_str());
  Child(root, "genid").text().set(clone.uuid.c_str());
  while (root.remove_child("metadata")) {
  }
  AddMetadata(root, clone.metadata);
  pugi::xml_node devices = Child(root, "devices");
  SetRootDisk(devices, clone.root_path);
  SetConsole(devices, clone.console_path);
  Child(Child(devices, "interface"), "mac").attribute("address").set_value(clone.mac.c_str());
  std::ostringstream text;
  document.save(text, "", pugi::format_raw | pugi::format_no_declaration);
  return text.str();
}

}  // namespace nodepool::drivers::libvirt
