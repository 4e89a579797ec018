// Numbers that carry their formula.
#include "shardplan/explain/sym.hpp"

#include "support/catch.hpp"

using namespace shardplan::explain;

namespace {

struct Letters {
  Expressions expressions;
  Sym of(const char* name, double value) { return expressions.symbol({name, "", "", "", "", value}); }
};

}  // namespace

TEST_CASE("an expression is its text, its numbers and its value") {
  Letters letters;
  const Sym p = letters.of("p", 4), m = letters.of("m", 256);
  const Sym bubble = (p - 1.0) / (m + p - 1.0);
  const Written text = write(bubble);
  CHECK(text.formula == "(p - 1)/(m + p - 1)");
  CHECK(text.substitution == "(4 - 1)/(256 + 4 - 1)");
  CHECK(bubble.value() == 3.0 / 259);
  CHECK(text.names == std::vector<std::string>{"p", "m"});
}

TEST_CASE("brackets stand where they are needed and nowhere else") {
  Letters letters;
  const Sym a = letters.of("a", 2), b = letters.of("b", 3), c = letters.of("c", 4);
  CHECK(write(a - (b - c)).formula == "a - (b - c)");
  CHECK(write(a - b - c).formula == "a - b - c");
  CHECK(write(a / (b * c)).formula == "a/(b*c)");
  CHECK(write((a + b) * c).formula == "(a + b)*c");
  CHECK(write(max(a, b + c)).formula == "max(a, b + c)");
  CHECK(write(pow(a + b, 2.0)).formula == "(a + b)^2");
}

TEST_CASE("what is not there leaves no trace") {
  Letters letters;
  const Sym a = letters.of("a", 2), nothing = letters.of("z", 0);
  CHECK(write(a * 1.0 + nothing * a).formula == "a");
  CHECK(write(a / 1.0 - nothing).formula == "a");
  CHECK(write(ceil(a)).formula == "a");
  CHECK(write(ceil(a / 4.0)).formula == "ceil(a/4)");
}

TEST_CASE("like terms are collected behind a common factor") {
  Letters letters;
  const Sym s = letters.of("s", 16), h = letters.of("h", 8), t = letters.of("t", 4);
  const Written text = write_collected(2.0 * s * h / t + 4.0 * s / t + 3.0 * (s / t) * h + 4.0 * s / t);
  CHECK(text.formula == "s/t*(5*h + 8)");
  CHECK(text.substitution == "16/4*(5*8 + 8)");
}

TEST_CASE("two symbols of one name have two names in a formula") {
  Letters letters;
  const Sym one = letters.of("kept", 1.5), other = letters.of("kept", 2.5);
  CHECK(write(one + other).formula == "kept + kept_2");
}

TEST_CASE("symbols of one name are told apart by where they stand") {
  Expressions made;
  const auto at = [&made](const char* address, double value) {
    return made.symbol({"forward", "forward pass", "s", address, "", value});
  };
  const Sym dense = at("layers.dense.forward", 1), head = at("head.forward", 2);
  CHECK(write(2.0 * dense + head).formula == "2*dense_forward + head_forward");
  const Sym first = at("time.forward@0", 1), second = at("time.forward@1", 2);
  CHECK(write(first + second).formula == "forward_0 + forward_1");
  const Sym chunk = at("time.forward.chunk0@1", 1), other = at("time.forward.chunk1@1", 2);
  CHECK(write(chunk + other).formula == "forward_chunk0_1 + forward_chunk1_1");
}
