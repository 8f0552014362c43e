#pragma once

#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nodepool::drivers::aws {

// Reads `text`, the answer to `call`; Error(kRetry): it is no XML.
pugi::xml_document ParseXml(std::string_view text, std::string_view call);

// The text of the element at the end of the path; empty: there is none.
std::string TextAt(const pugi::xml_node& node, std::initializer_list<const char*> path);
// 0: there is no number.
int NumberAt(const pugi::xml_node& node, std::initializer_list<const char*> path);

// The entries of a list: <instancesSet><item/><item/></instancesSet>.
std::vector<pugi::xml_node> Items(const pugi::xml_node& node, const char* list);

}  // namespace nodepool::drivers::aws
