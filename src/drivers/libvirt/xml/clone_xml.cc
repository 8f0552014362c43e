#include "drivers/libvirt/xml/clone_xml.h"

#include <sstream>

#include "base/error.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

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
