#include "drivers/libvirt/xml/host_xml.h"

#include <fmt/format.h>

#include "base/error.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
