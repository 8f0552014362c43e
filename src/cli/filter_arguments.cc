#include "cli/filter_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace nodepool::cli {
namespace {

// "NAME", or the allowed words in the format of the parser's own choices.
std::string TypeOf(const listing::Column& column, std::string_view name) {
  std::string type(name);
  for (char& c : type) c = static_cast<char>(std::toupper(c));
  std::vector<std::string> words(column.words.begin(), column.words.end());
  return words.empty() ? type : fmt::format("{}:{{{}}}", type, Join(words, ","));
}

}  // namespace

void FilterArguments::AddTo(CLI::App& command, const std::vector<listing::Column>& columns) {
  for (const auto& [kind, name] : listing::kFilters) {
    const listing::Column* column = Find(columns, kind);
    if (column == nullptr) continue;
    command
        .add_option(fmt::format("--{}", name), words_[kind],
                    fmt::format("only of this {}; may be repeated", name))
        ->allow_extra_args(false)
        ->type_name(TypeOf(*column, name));
  }
}

listing::RowFilter FilterArguments::Filter(const std::vector<listing::Column>& columns) const {
  listing::RowFilter filter;
  for (const auto& [kind, words] : words_) {
    if (!words.empty()) filter[kind] = {words.begin(), words.end()};
  }
  if (auto fault = FaultOf(filter, columns))
    throw CLI::ValidationError(fmt::format("--{}", listing::NameOf(fault->kind)), fault->message);
  return filter;
}

}  // namespace nodepool::cli
