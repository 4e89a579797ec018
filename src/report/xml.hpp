// Text in XML documents.
#pragma once

#include <string>
#include <string_view>

namespace shardplan::report {

/// Text of an element or attribute. What XML 1.0 cannot hold becomes '?'.
std::string xml_text(std::string_view text);

}  // namespace shardplan::report
