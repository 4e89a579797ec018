// Linking counting_new.cpp into a program makes it count its allocations.
#pragma once

namespace test {

/// Calls of operator new so far.
long allocations() noexcept;

}  // namespace test
