#include "drivers/libvirt/xml/pool_xml.h"

#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

std::string PoolXml(const std::string& name, const std::string& path) {
  pugi::xml_document document;
  pugi::xml_node root = With(document.append_child("pool"), {{"type", "dir"}});
  Add(root, "name", name);
  Add(root.append_child("target"), "path", path);
  return TextOf(document);
}

}  // namespace nodepool::drivers::libvirt
