// What must hold on every page of an estimate.
#pragma once

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "shardplan/report/text.hpp"
#include "support/catch.hpp"

namespace test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Without escapes.
inline std::string uncolored(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
      continue;
    }
    out += text[i];
  }
  return out;
}

/// A printed number with commas, or nothing that is one.
inline bool number_of(std::string word, double& value) {
  std::string digits;
  for (const char c : word) {
    if (c != ',') digits += c;
  }
  char* end = nullptr;
  value = std::strtod(digits.c_str(), &end);
  return end != digits.c_str() && *end == '\0';
}

inline void check_widths(const std::string& text, int width) {
  for (const std::string& line : lines_of(uncolored(text))) {
    CAPTURE(width, line);
    REQUIRE(shardplan::report::display_width(line) <= static_cast<std::size_t>(width));
    REQUIRE((line.empty() || line.back() != ' '));
  }
}

/// The parts of each stage (or of the one stage) sum to the total that is printed. Pages of 80 columns or more.
inline void check_memory_sums(const std::string& text) {
  enum class Part { before, stages, parts } part = Part::before;
  double sum = 0;
  int rows = 0;
  std::size_t counts = 0;  // columns before the sizes
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    if (part == Part::before) {
      counts = line.find(" layers ") != std::string::npos ? 2 : 1;
      if (line.rfind("stage ", 0) == 0 || line.rfind("GPU ", 0) == 0) part = Part::stages;
      if (line.rfind("part ", 0) == 0) part = Part::parts;
      continue;
    }
    std::vector<double> numbers;
    std::istringstream in(line);
    std::string word;
    in >> word;
    const std::string first = word;
    if (first == "comm") in >> word;  // "comm buffers"
    while (in >> word) {
      double value = 0;
      if (!number_of(word, value)) break;
      numbers.push_back(value);
    }
    if (part == Part::parts) {
      if (numbers.empty()) break;
      if (first == "total") {
        CHECK(std::abs(sum - numbers[0]) < 1e-6);
        ++rows;
        break;
      }
      sum += numbers[0];
    } else if (line.rfind(" *", 0) == 0 || line.rfind("  ", 0) == 0) {
      if (numbers.size() < 5) continue;  // "2-13  between: ..."
      double row = 0;
      for (std::size_t i = counts; i + 1 < numbers.size(); ++i) row += numbers[i];
      CHECK(std::abs(row - numbers.back()) < 1e-6);
      ++rows;
    } else {
      break;
    }
  }
  CAPTURE(text);
  CHECK(rows > 0);
}

/// The rows of the step sum to the step, their shares to 100%.
inline void check_time_sums(const std::string& text) {
  bool inside = false;
  double step = 0;
  double time = 0;
  double percent = 0;
  for (const std::string& line : lines_of(text)) {
    std::istringstream in(line);
    if (line.rfind("Step ", 0) == 0) {
      inside = true;
      std::string word;
      in >> word >> word;
      if (word == "about") in >> word;
      REQUIRE(number_of(word, step));
    } else if (line.rfind("MFU", 0) == 0) {
      inside = false;
    } else if (inside) {
      double value = 0;
      std::string word;
      while (in >> word) {
        if (number_of(word, value)) break;
      }
      time += value;
      in >> word >> word;  // the unit, the share
      REQUIRE(word.back() == '%');
      REQUIRE(number_of(word.substr(0, word.size() - 1), value));
      percent += value;
    }
  }
  CAPTURE(text);
  CHECK(std::abs(time - step) < 1e-6);
  CHECK(std::abs(percent - 100) < 1e-6);
}

/// The communication table's sent, time and exposed columns sum to their total.
inline void check_communication_sums(const std::string& text) {
  bool inside = false;
  std::vector<double> sums(3, 0.0);
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("Communication", 0) == 0) inside = true;
    if (!inside) continue;
    std::vector<double> numbers;
    std::istringstream in(line);
    std::string word;
    double value = 0;
    while (in >> word) {
      if (number_of(word, value)) numbers.push_back(value);
    }
    if (numbers.size() < 3) continue;
    const bool total = line.find(" total ") != std::string::npos;
    for (std::size_t i = 0; i < 3; ++i) {
      const double last = numbers[numbers.size() - 3 + i];
      if (total) CHECK(std::abs(sums[i] - last) < 1e-6);
      sums[i] += last;
    }
    if (total) return;
  }
  CHECK_FALSE(inside);  // a table has a total
}

}  // namespace test
