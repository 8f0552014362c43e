#include "cli/confirmation.h"

#include <fmt/format.h>

#include <ostream>

#include "cli/page.h"

namespace nodepool::cli {
namespace {

Task<bool> IsConfirmed(Context& context, const listing::Listing& rows, std::string question) {
  context.out << TextOf(rows, PageOf(context, Output::kTable)) << '\n' << question << std::flush;
  std::string answer = co_await context.read_line();
  co_return answer == "y" || answer == "Y";
}

}  // namespace

Task<bool> MayChange(Context& context, const listing::Listing& rows, bool is_confirmed, std::string verb,
                     std::string nouns) {
  if (is_confirmed || rows.rows.size() <= 1) co_return true;
  if (!context.can_ask) {
    context.logger.Error("{} {} match; --yes is missing to {} them all", rows.rows.size(), nouns, verb);
    co_return false;
  }
  std::string question = fmt::format("Really {} these {} {}? [N/y] ", verb, rows.rows.size(), nouns);
  bool is_meant = co_await IsConfirmed(context, rows, std::move(question));
  if (!is_meant) context.logger.Error("Nothing was changed");
  co_return is_meant;
}

}  // namespace nodepool::cli
