// A stack that says what it is like, and what it does not take over.
#include <map>
#include <nlohmann/json.hpp>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/stack_file.hpp"
#include "support/catch.hpp"

using namespace shardplan;
using nlohmann::json;

namespace {

/// Stacks of a test's own.
struct Shelf final : io::CatalogSource {
  std::map<std::string, std::string, std::less<>> texts;

  std::optional<std::string_view> find(io::CatalogKind kind, std::string_view name) const override {
    const auto found = texts.find(name);
    if (kind != io::CatalogKind::stacks || found == texts.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::string_view> names(io::CatalogKind) const override {
    std::vector<std::string_view> list;
    for (const auto& [name, text] : texts) list.push_back(name);
    return list;
  }
  std::vector<std::string_view> aliases(io::CatalogKind) const override { return {}; }
};

Shelf shelf() {
  Shelf shelf;
  shelf.texts["base"] = R"({"name": "base", "framework": "megatron", "description": "first", "source": "its paper",
    "kernels": {"norm": "naive", "mlp": "naive"}, "loss": "hf", "overlap": {"grad_reduce": false, "tp": true},
    "memory": {"gathered_layers": 3, "prefetch": 7}, "timing": {"measured": true, "host_forward_s": 0.25}})";
  shelf.texts["middle"] = R"({"name": "middle", "like": "base", "kernels": {"mlp": "fused"}, "source": "another"})";
  shelf.texts["last"] = R"({"name": "last", "like": "middle", "overlap": {"tp": false}, "memory": {"prefetch": null}})";
  shelf.texts["ring-a"] = R"({"name": "ring-a", "like": "ring-b"})";
  shelf.texts["ring-b"] = R"({"name": "ring-b", "like": "ring-a"})";
  shelf.texts["self"] = R"({"name": "self", "like": "self"})";
  shelf.texts["lost"] = R"({"name": "lost", "like": "bases"})";
  shelf.texts["number"] = R"({"name": "number", "like": 3})";
  return shelf;
}

Diagnostic only_problem(std::string_view name) {
  const Result<Stack> read = io::find_stack(name, "run.json", "/training/stack", shelf());
  REQUIRE(read.problems.size() == 1);
  return read.problems[0];
}

}  // namespace

TEST_CASE("a stack takes over what it does not state, member by member, through every stack between") {
  const Result<Stack> read = io::find_stack("last", "run.json", "/training/stack", shelf());
  REQUIRE(read.ok());
  const Stack& stack = read.value;
  CHECK(stack.name == "last");
  CHECK(stack.framework == Framework::megatron);
  CHECK(stack.kernels.norm == NormKernel::naive);
  CHECK(stack.kernels.mlp == MlpKernel::fused);
  CHECK(stack.loss == LossKind::hf);
  CHECK_FALSE(stack.overlap.grad_reduce);
  CHECK_FALSE(stack.overlap.tp);
  CHECK(stack.memory.gathered_layers == 3);
  CHECK(stack.memory.prefetch == 0);  // null: the default
  CHECK(stack.timing.host_forward_s == 0.25);
}

TEST_CASE("who a stack is and what was measured of it are not taken over") {
  const Stack middle = io::find_stack("middle", "", "", shelf()).value;
  CHECK(middle.description.empty());
  CHECK(middle.source == "another");
  CHECK_FALSE(middle.timing.measured);
  CHECK(io::find_stack("last", "", "", shelf()).value.source.empty());
  CHECK(io::find_stack("base", "", "", shelf()).value.timing.measured);
}

TEST_CASE("a stack that is like itself, like nothing or like no name is one problem") {
  for (const char* name : {"ring-a", "ring-b", "self"}) {
    INFO(name);
    const Diagnostic problem = only_problem(name);
    CHECK_THAT(problem.message, test::Contains("is like itself"));
    CHECK_THAT(problem.pointer, test::Contains("/like"));
  }
  CHECK_THAT(only_problem("ring-a").message, test::Contains("ring-a, ring-b, ring-a"));
  CHECK_THAT(only_problem("lost").message,
             test::Contains("\"bases\" is not a built-in stack") && test::Contains("base"));
  CHECK_THAT(only_problem("number").message, test::Contains("3 is not a stack's name"));
}

TEST_CASE("built-in stacks state what differs and nothing else") {
  const io::CatalogSource& catalog = catalog::builtin_catalog();
  std::vector<std::string> names;
  for (const std::string_view name : catalog.names(io::CatalogKind::stacks)) names.emplace_back(name);
  for (const std::string_view framework : names_of<Framework>) {
    const std::string name = "framework-" + std::string(framework);
    if (catalog.find(io::CatalogKind::stacks, name)) names.push_back(name);
  }
  int derived = 0;
  for (const std::string& name : names) {
    INFO(name);
    const json own = json::parse(*catalog.find(io::CatalogKind::stacks, name));
    if (!own.contains("like")) continue;
    ++derived;
    json base = json::parse(*catalog.find(io::CatalogKind::stacks, own["like"].get<std::string>()));
    base = io::whole_stack(base, "", "", catalog).value;
    for (const auto& [key, value] : own.items()) {
      if (!value.is_object()) {
        if (key != "name" && key != "like" && key != "source" && key != "description") CHECK(value != base[key]);
        continue;
      }
      for (const auto& [member, inner] : value.items()) {
        INFO(key << "." << member);
        if (member != "measured") CHECK(inner != base[key][member]);
      }
    }
  }
  CHECK(derived >= 17);
}
