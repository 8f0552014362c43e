#include "listing/wrap.h"

#include <algorithm>

#include "base/text.h"
#include "listing/display_width.h"

namespace nodepool::listing {

std::string Wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string wrapped;
  std::size_t used = 0;
  for (const std::string& word : Split(text, ' ')) {
    std::string shown = CutToWidth(word, std::max<std::size_t>(width - std::min(width, indent), 1));
    std::size_t needed = DisplayWidth(shown);
    if (wrapped.empty()) {
      used = needed;
    } else if (used + 1 + needed <= width) {
      wrapped += ' ';
      used += 1 + needed;
    } else {
      wrapped += '\n' + std::string(indent, ' ');
      used = indent + needed;
    }
    wrapped += shown;
  }
  return wrapped;
}

}  // namespace nodepool::listing
