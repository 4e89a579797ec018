#include <nlohmann/json_fwd.hpp>
