#pragma once

#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nodepool::drivers::aws {

// What an operator does about an answer that does not come from AWS, or not whole.
inline constexpr const char* kOddAnswer = "check that the AWS_ENDPOINT_URL settings and proxies lead to AWS";

// Reads `text`, the answer to `call`. Error(kRetry), with AWS's id of the call: it is no XML, or ends too
// early.
pugi::xml_document ParseXml(std::string_view text, std::string_view call, std::string_view request_id = "");

// The text of the element at the end of the path; empty: there is none.
std::string TextAt(const pugi::xml_node& node, std::initializer_list<const char*> path);
// 0: there is no number.
int NumberAt(const pugi::xml_node& node, std::initializer_list<const char*> path);

// The entries of a list: <instancesSet><item/><item/></instancesSet>.
std::vector<pugi::xml_node> Items(const pugi::xml_node& node, const char* list);

}  // namespace nodepool::drivers::aws
