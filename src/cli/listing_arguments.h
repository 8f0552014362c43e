#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/show_listing.h"

namespace nodepool::cli {

// The options of commands that list something: only those that make sense for the list.
class ListingArguments {
 public:
  // The command outlives this, and this the parsing.
  void AddTo(CLI::App& command, const ListingCommand& listing);

  Output output() const { return is_json_ ? Output::kJson : Output::kTable; }
  // What was given to the command that was parsed. Throws CLI::ValidationError for a value
  // that cannot be meant.
  View ViewOf(const CLI::App& command, const ListingCommand& listing) const;

 private:
  bool is_json_ = false;
  std::map<listing::Kind, std::vector<std::string>> words_;
  std::string watch_;
  std::string color_ = "auto";
};

}  // namespace nodepool::cli
