#include "drivers/libvirt/xml/pool_xml.h"

#include <fmt/format.h>

#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
