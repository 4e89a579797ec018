// The members of a stack file, each the member of a Stack that it is.
#pragma once

#include <string_view>

#include "object_reader.hpp"
#include "shardplan/core/member.hpp"
#include "shardplan/core/stack.hpp"

namespace shardplan::io {

struct StackMember {
  std::string_view name;
  Member<Stack> value;
};

/// What the reader's object states; the rest of the stack stays as it is.
void read_stack_members(ObjectReader& reader, Stack& stack);

}  // namespace shardplan::io
