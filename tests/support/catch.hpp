// One include for Catch2 v2 (Debian 12) and v3 (elsewhere). Names that moved between them live in namespace test.
#pragma once

#include <string>

#ifdef SHARDPLAN_CATCH3
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
namespace test {
using Catch::Approx;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
inline auto Contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
inline auto StartsWith(const std::string& text) { return Catch::Matchers::StartsWith(text); }
}  // namespace test
#else
#include <catch2/catch.hpp>
namespace test {
using Catch::WithinRel;
using Catch::Detail::Approx;
using Catch::Matchers::WithinAbs;
inline auto Contains(const std::string& text) { return Catch::Matchers::Contains(text); }
inline auto StartsWith(const std::string& text) { return Catch::Matchers::StartsWith(text); }
}  // namespace test
#endif
