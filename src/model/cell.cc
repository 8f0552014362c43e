#include "model/cell.h"

#include "model/json.h"

namespace nodepool {

Cell Cell::OfWritten(std::string_view json) {
  if (json == "null") return {};
  if (json.starts_with('"')) return DecodeJsonText(json);
  return Cell(Content(Written{json}));
}

boost::json::value Cell::Copy() const {
  if (std::optional<std::string_view> text = this->text()) return boost::json::value(*text);
  if (std::optional<std::string_view> json = written()) return JsonValueOf(*json);
  return value();
}

}  // namespace nodepool
