// What the commands print, told to a writer that describes it: every member that may be there, each list with an entry.
#pragma once

#include "json_writer.hpp"

namespace shardplan::io {

void describe_estimate(JsonWriter& out);
void describe_search(JsonWriter& out);
void describe_solve(JsonWriter& out);
void describe_sweep(JsonWriter& out);
void describe_compare(JsonWriter& out);
void describe_check(JsonWriter& out);
/// A card, every topic, the addresses of an estimate: three documents.
void describe_explain(JsonWriter& out);
void describe_schedule(JsonWriter& out);
/// An item of `list`. Those that are entries of files are like the definition of that name.
void describe_list_item(JsonWriter& out, std::string_view kind);

}  // namespace shardplan::io
