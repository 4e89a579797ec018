// The main() of every test executable: Catch2 v3 links its own.
#ifndef SHARDPLAN_CATCH3
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
