#include "shardplan/core/number_text.hpp"

#include <cmath>
#ifndef __cpp_lib_to_chars
#include <locale>
#include <sstream>
#include <string>
#endif

namespace shardplan {
namespace {

#ifdef __cpp_lib_to_chars

std::optional<double> read(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

#else

std::string_view without_digits(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  return text.substr(end == std::string_view::npos ? text.size() : end);
}

/// [-]digits[.digits][e[+-]digits], one digit before the exponent at least.
bool is_decimal(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  const std::string_view whole = without_digits(text);
  std::string_view rest = whole;
  std::size_t digits = text.size() - whole.size();
  if (!rest.empty() && rest.front() == '.') {
    rest = without_digits(whole.substr(1));
    digits = text.size() - rest.size() - 1;
  }
  if (digits == 0) return false;
  if (rest.empty()) return true;
  if (rest.front() != 'e' && rest.front() != 'E') return false;
  rest.remove_prefix(1);
  if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) rest.remove_prefix(1);
  return !rest.empty() && without_digits(rest).empty();
}

std::optional<double> read(std::string_view text) {
  if (!is_decimal(text)) return std::nullopt;
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  double value = 0;
  if (!(stream >> value) || stream.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  return value;
}

#endif

}  // namespace

std::optional<double> double_from_chars(std::string_view text) {
  const std::optional<double> value = read(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace shardplan
