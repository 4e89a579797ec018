#include "shardplan/io/suggest.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace shardplan::io {
namespace {

/// What counts of a word: lower case, no separators.
std::string essence(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (c == '-' || c == '_' || c == ' ') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  return out;
}

/// Words that people use for what is called otherwise here, in their essence.
struct Alias {
  std::string_view typed;
  std::string_view meant;
};
constexpr std::array<Alias, 25> aliases = {{{"fp4", "nvfp4"},
                                            {"mxfp4", "nvfp4"},
                                            {"float4", "nvfp4"},
                                            {"float8", "fp8"},
                                            {"e4m3", "fp8"},
                                            {"mxfp8", "fp8"},
                                            {"half", "fp16"},
                                            {"float16", "fp16"},
                                            {"bfloat16", "bf16"},
                                            {"float", "fp32"},
                                            {"float32", "fp32"},
                                            {"single", "fp32"},
                                            // Fabrics: what is RDMA over Ethernet behaves as roce.
                                            {"slingshot", "roce"},
                                            {"slingshot11", "roce"},
                                            {"rocev2", "roce"},
                                            {"spectrumx", "roce"},
                                            {"ib", "infiniband"},
                                            {"hdr", "infiniband"},
                                            {"ndr", "infiniband"},
                                            {"xdr", "infiniband"},
                                            {"opa", "omni-path"},
                                            {"cornelis", "omni-path"},
                                            {"srd", "efa"},
                                            {"tcp", "ethernet"},
                                            {"tcpx", "ethernet"}}};

}  // namespace

std::size_t edit_distance(std::string_view from, std::string_view to) {
  const std::string a = essence(from);
  const std::string b = essence(to);
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string typed = essence(word);
  for (const Alias& alias : aliases) {
    if (typed != alias.typed) continue;
    const auto meant = std::find(candidates.begin(), candidates.end(), alias.meant);
    if (meant != candidates.end()) return *meant;
  }
  constexpr std::size_t longest_word = 100;  // what is longer is no mistyped name, and must not cost time
  if (word.empty() || word.size() > longest_word) return {};
  std::string_view best;
  std::size_t least = 0;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (distance <= allowed && (best.empty() || distance < least)) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view near = closest(word, candidates);
  return near.empty() ? std::string() : "; did you mean \"" + std::string(near) + "\"?";
}

std::vector<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates,
                                      std::size_t most) {
  constexpr std::size_t longest_word = 100;
  std::vector<std::pair<std::size_t, std::string_view>> order;
  order.reserve(candidates.size());
  for (const std::string_view candidate : candidates) {
    order.emplace_back(edit_distance(word.substr(0, longest_word), candidate), candidate);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  order.resize(std::min(order.size(), most));
  std::vector<std::string_view> words;
  words.reserve(order.size());
  for (const auto& each : order) words.push_back(each.second);
  return words;
}

std::string fields_here(const std::vector<std::string_view>& fields) {
  constexpr std::size_t most = 40;
  std::vector<std::string_view> shown;
  for (const std::string_view field : fields) {
    if (field.empty() || field.front() == '$') continue;
    if (std::find(shown.begin(), shown.end(), field) == shown.end()) shown.push_back(field);
  }
  if (shown.empty()) return {};
  if (shown.size() == 1) return "the field here is " + std::string(shown.front());
  const std::string more = shown.size() > most ? std::to_string(shown.size() - most) + " more" : std::string();
  if (!more.empty()) {
    shown.resize(most);
    shown.push_back(more);
  }
  return "the fields here are " + list_of(shown, "and");
}

std::string list_of(const std::vector<std::string_view>& words, std::string_view conjunction) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " " + std::string(conjunction) + " " : ", ";
    out += words[i];
  }
  return out;
}

}  // namespace shardplan::io
