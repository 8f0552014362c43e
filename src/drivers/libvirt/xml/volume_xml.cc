#include "drivers/libvirt/xml/volume_xml.h"

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

}  // namespace nodepool::drivers::libvirt
