#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// Adds <name>text</name>.
inline pugi::xml_node Add(pugi::xml_node parent, const char* name, const std::string& text) {
  pugi::xml_node node = parent.append_child(name);
  node.text().set(text.c_str());
  return node;
}

// Sets attributes in the order given; returns the node.
inline pugi::xml_node With(pugi::xml_node node,
                           std::initializer_list<std::pair<const char*, std::string>> attributes) {
  for (const auto& [name, value] : attributes) node.append_attribute(name).set_value(value.c_str());
  return node;
}

// The document as libvirt takes it.
std::string TextOf(const pugi::xml_document& document);

// Parses what a host has answered. Error(kFail): it is not XML; `what` names it, e.g. "a domain".
void Parse(std::string_view text, const char* what, pugi::xml_document& document);

}  // namespace nodepool::drivers::libvirt
