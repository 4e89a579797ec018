// `list`: stable tables, JSON that can be fed back, words for what does not exist.
#include <nlohmann/json.hpp>
#include <sstream>

#include "list_command.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/core/number_format.hpp"
#include "shardplan/io/cluster_file.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/report/list_text.hpp"
#include "shardplan/schedule/closed_form.hpp"
#include "shardplan/schedule/facts.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

cli::Outcome list(const std::string& kind, cli::Format format, const std::string& vendor = {}, int width = 100) {
  cli::ListOptions options;
  options.kind = kind;
  options.vendor = vendor;
  options.style.format = format;
  options.style.page.width = width;
  return cli::run_list(options);
}

nlohmann::json list_json(const std::string& kind, const std::string& vendor = {}) {
  const cli::Outcome outcome = list(kind, cli::Format::json, vendor);
  CHECK(outcome.status == cli::exit_ok);
  REQUIRE(outcome.problems.empty());
  return nlohmann::json::parse(outcome.result);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string line_with(const std::string& text, const std::string& word) {
  for (const std::string& line : lines_of(text)) {
    if (line.rfind(word, 0) == 0) return line;
  }
  return {};
}

const char* const kinds[] = {"models", "gpus", "clusters", "stacks", "schedules", "optimizers", "dtypes"};

}  // namespace

TEST_CASE("every kind as JSON: schema, version, kind, named items with a source") {
  for (const std::string kind : kinds) {
    INFO(kind);
    const nlohmann::json document = list_json(kind);
    CHECK(document.at("schema") == "shardplan/list/v1");
    CHECK(document.at("version").is_string());
    CHECK(document.at("kind") == kind);
    if (kind != "models") CHECK(document.at("items").size() >= 7);
    for (const nlohmann::json& item : document.at("items")) {
      INFO(item.dump());
      CHECK_FALSE(item.at("name").get<std::string>().empty());
      CHECK_FALSE(item.at("source").get<std::string>().empty());
    }
  }
}

TEST_CASE("every kind as text fits the page, and has as many rows as JSON has items") {
  for (const std::string kind : kinds) {
    INFO(kind);
    const std::size_t items = list_json(kind).at("items").size();
    for (const int width : {60, 80, 100, 200}) {
      const cli::Outcome outcome = list(kind, cli::Format::text, {}, width);
      CHECK(outcome.status == cli::exit_ok);
      const std::vector<std::string> lines = lines_of(outcome.result);
      CHECK(lines.size() > items);
      for (const std::string& line : lines) {
        INFO(line);
        CHECK(line.size() <= static_cast<std::size_t>(width));
      }
    }
    CHECK(lines_of(list(kind, cli::Format::csv).result).size() == items + 1);
    CHECK(lines_of(list(kind, cli::Format::markdown).result).size() >= items + 2);
  }
}

TEST_CASE("a GPU of the list is a GPU of a cluster file") {
  const nlohmann::json document = list_json("gpus");
  CHECK(document.at("items").size() == catalog::builtin_catalog().names(io::CatalogKind::gpus).size());
  for (const nlohmann::json& item : document.at("items")) {
    INFO(item.dump());
    const nlohmann::json file = {{"gpu", item}, {"gpus_per_node", 4}};
    const Result<Cluster> inlined = io::read_cluster(file, "test", "", catalog::builtin_catalog());
    REQUIRE(inlined.ok());
    const std::string name = item.at("name");
    const Gpu own = io::find_gpu(name, "test", "", catalog::builtin_catalog()).value;
    const Gpu& gpu = inlined.value.gpu;
    CHECK(gpu.name == own.name);
    CHECK(gpu.vendor == own.vendor);
    CHECK(gpu.memory_cuda_bytes == own.memory_cuda_bytes);
    CHECK(gpu.memory_is_estimated == own.memory_is_estimated);
    CHECK(gpu.memory_reported_bytes == own.memory_reported_bytes);
    CHECK(gpu.memory_bandwidth == own.memory_bandwidth);
    CHECK(gpu.peak_flop_per_s == own.peak_flop_per_s);
    CHECK(gpu.link_bandwidth == own.link_bandwidth);
    CHECK(gpu.pcie_bandwidth == own.pcie_bandwidth);
    CHECK(gpu.scale_up_domain == own.scale_up_domain);
    CHECK(gpu.multiprocessors == own.multiprocessors);
    CHECK(gpu.major == own.major);
    CHECK(gpu.gemm.peak_fraction == own.gemm.peak_fraction);
    CHECK(gpu.gemm.launch_s == own.gemm.launch_s);
    CHECK(gpu.gemm.sustained == own.gemm.sustained);
    CHECK(gpu.gemm.measured == own.gemm.measured);
    CHECK(gpu.attention.forward == own.attention.forward);
    CHECK(gpu.attention_v1.backward == own.attention_v1.backward);
    CHECK(gpu.attention_v3.backward == own.attention_v3.backward);
    CHECK(gpu.inter_node_efficiency == own.inter_node_efficiency);
  }
}

TEST_CASE("clusters and stacks of the list read back") {
  for (const nlohmann::json& item : list_json("clusters").at("items")) {
    INFO(item.dump());
    CHECK(io::read_cluster(item, "test", "", catalog::builtin_catalog()).ok());
  }
  for (const nlohmann::json& item : list_json("stacks").at("items")) {
    INFO(item.dump());
    CHECK(io::read_stack(item, "test", "", catalog::builtin_catalog()).ok());
    CHECK(item.at("name").get<std::string>().rfind("framework-", 0) != 0);
  }
}

TEST_CASE("rows that people look for") {
  const std::string gpus = list("gpus", cli::Format::text, "nvidia", 120).result;
  CHECK_THAT(lines_of(gpus).front(), test::Contains("name") && test::Contains("usable GiB") && test::Contains("bf16") &&
                                         test::Contains("link GB/s"));
  CHECK_THAT(line_with(gpus, "A100-SXM-80GB"),
             test::Contains("79.15") && test::Contains("2039") && test::Contains("312") && test::Contains("300"));
  CHECK_THAT(line_with(gpus, "H100-SXM-80GB"),
             test::Contains("79.11") && test::Contains("989.4") && test::Contains("1978.9"));
  CHECK_THAT(gpus, test::Contains("TFLOP/s dense"));
  CHECK(gpus.find("MI300X") == std::string::npos);

  CHECK_THAT(line_with(list("clusters", cli::Format::text).result, "dgx-h100"),
             test::Contains("H100-SXM-80GB") && test::Contains("450") && test::Contains("50"));
  CHECK_THAT(line_with(list("stacks", cli::Format::text).result, "megatron-core-2024"), test::Contains("te"));
  CHECK_THAT(line_with(list("schedules", cli::Format::text).result, "interleaved"), test::Contains("(p-1)/(vm+p-1)"));
  CHECK_THAT(line_with(list("optimizers", cli::Format::text).result, "adamw "), test::Contains(" 8 "));
}

TEST_CASE("a vendor's GPUs, its name in any case") {
  CHECK(list_json("gpus", "AMD").at("items") == list_json("gpus", "amd").at("items"));
  const std::size_t nvidia = list_json("gpus", "nvidia").at("items").size();
  CHECK(nvidia > 30);
  CHECK(nvidia < list_json("gpus").at("items").size());
}

TEST_CASE("what does not exist is a problem, with the way out") {
  const cli::Outcome kind = list("gpu", cli::Format::text);
  CHECK(kind.status == cli::exit_input);
  CHECK(kind.result.empty());
  REQUIRE(kind.problems.size() == 1);
  CHECK_THAT(kind.problems[0].message, test::Contains("did you mean \"gpus\"") && test::Contains("optimizers"));

  const cli::Outcome vendor = list("gpus", cli::Format::text, "nvida");
  CHECK(vendor.status == cli::exit_input);
  REQUIRE(vendor.problems.size() == 1);
  CHECK_THAT(vendor.problems[0].message, test::Contains("did you mean \"NVIDIA\""));

  CHECK(list("models", cli::Format::text, "nvidia").status == cli::exit_input);
  CHECK(list("topic", cli::Format::text).status == cli::exit_input);
}

TEST_CASE("without a kind the kinds are listed") {
  const std::string text = list("", cli::Format::text).result;
  for (const char* kind : kinds) CHECK_FALSE(line_with(text, kind).empty());
}

TEST_CASE("number formats have the range and step that their standards print") {
  struct Row {
    const char* name;
    int bits;
    double max;
    double min_normal;
    double min_subnormal;
    double epsilon;
  };
  const Row rows[] = {
      {"fp32", 32, 3.4028234663852886e38, 1.1754943508222875e-38, 1.401298464324817e-45, 1.1920928955078125e-7},
      {"tf32", 19, 3.4011621342146535e38, 1.1754943508222875e-38, 1.1479437019748901e-41, 0.0009765625},
      {"bf16", 16, 3.3895313892515355e38, 1.1754943508222875e-38, 9.183549615799121e-41, 0.0078125},
      {"fp16", 16, 65504, 6.103515625e-5, 5.960464477539063e-8, 0.0009765625},
      {"fp8-e4m3", 8, 448, 0.015625, 0.001953125, 0.125},
      {"fp8-e5m2", 8, 57344, 6.103515625e-5, 1.52587890625e-5, 0.25},
      {"fp4-e2m1", 4, 6, 1, 0.5, 0.5}};
  REQUIRE(std::size(rows) == number_formats.size());
  for (std::size_t i = 0; i < number_formats.size(); ++i) {
    const NumberFormat& format = number_formats[i];
    INFO(rows[i].name);
    CHECK(format.name == rows[i].name);
    CHECK(format.bits() == rows[i].bits);
    CHECK(format.max() == test::Approx(rows[i].max).epsilon(1e-12));
    CHECK(format.min_normal() == rows[i].min_normal);
    CHECK(format.min_subnormal() == rows[i].min_subnormal);
    CHECK(format.epsilon() == rows[i].epsilon);
  }
}

TEST_CASE("the bubble that each schedule's row promises is the simulated one") {
  using schedule::ideal_bubble_fraction;
  for (const int p : {2, 4, 8}) {
    for (const int m : {2 * p, 4 * p}) {
      INFO("p " << p << " m " << m);
      const double P = p;
      const double M = m;
      const auto bubble = [&](ScheduleKind kind, int v) { return ideal_bubble_fraction(kind, p, m, v); };
      CHECK(bubble(ScheduleKind::naive, 1) == test::Approx((P - 1) / P));
      CHECK(bubble(ScheduleKind::gpipe, 1) == test::Approx((P - 1) / (M + P - 1)));
      CHECK(bubble(ScheduleKind::one_f_one_b, 1) == test::Approx((P - 1) / (M + P - 1)));
      CHECK(bubble(ScheduleKind::interleaved, 3) == test::Approx((P - 1) / (3 * M + P - 1)));
      CHECK(bubble(ScheduleKind::bfs, 3) == test::Approx((P - 1) / (3 * M + P - 1)));
      CHECK(bubble(ScheduleKind::zb_h1, 1) == test::Approx((P - 1) / (3 * M + P - 1)));
      CHECK(bubble(ScheduleKind::zb_h2, 1) == test::Approx((P - 1) / (3 * M + P - 1)));
      CHECK(bubble(ScheduleKind::zb_v, 2) == test::Approx((P - 1) / (6 * M + P - 1)));
      CHECK(bubble(ScheduleKind::dualpipe, 1) == test::Approx((P - 2) / (3 * M + P - 2)));
      CHECK(bubble(ScheduleKind::dualpipe_v, 2) == test::Approx((P - 1) / (3 * M + P - 1)));
    }
  }
  CHECK(schedule::bubble_text(ScheduleKind::naive) == "(p-1)/p");
  CHECK(schedule::bubble_text(ScheduleKind::one_f_one_b) == "(p-1)/(m+p-1)");
  CHECK(schedule::bubble_text(ScheduleKind::bfs) == "(p-1)/(vm+p-1)");
  CHECK(schedule::bubble_text(ScheduleKind::dualpipe) == "(p-2)/(3m+p-2)");
  for (std::size_t i = 0; i < schedule_count; ++i) {  // the form of every row
    const auto kind = static_cast<ScheduleKind>(i);
    INFO(name(kind));
    const int v = schedule::least_chunks(kind) + (schedule::fixed_chunks(kind) == 0 ? 1 : 0);
    CHECK(schedule::ideal_bubble<double>(kind, 4, 24, v) == test::Approx(ideal_bubble_fraction(kind, 4, 24, v)));
    CHECK_FALSE(schedule::facts_of(kind).summary.empty());
    CHECK_FALSE(schedule::facts_of(kind).helps.empty());
    CHECK_FALSE(schedule::facts_of(kind).source.empty());
  }
}

TEST_CASE("long sources are cut at the end of a clause") {
  using report::cut_to_page;
  const char* const text = "OPT paper (arXiv:2205.01068) table 1; vendor";
  CHECK(cut_to_page(text, 0, 0) == text);
  CHECK(cut_to_page(text, 100, 50) == text);
  CHECK(cut_to_page(text, 100, 60) == "OPT paper (arXiv:2205.01068) table 1");
  CHECK(cut_to_page(text, 100, 70) == "OPT paper (arXiv:2205.01068)");
  CHECK(cut_to_page(text, 100, 80) == "OPT paper");
  CHECK(cut_to_page("one_word_without_any_end", 100, 88) == "one_word_...");
  CHECK(cut_to_page("one_word_without_any_end", 10, 88) == "one_word_...");
}
