#include "xml.hpp"

#include "shardplan/core/utf8.hpp"

namespace shardplan::report {

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : as_utf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += "&#10;"; break;
      case '\t': out += "&#9;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20U ? '?' : c;
    }
  }
  return out;
}

}  // namespace shardplan::report
