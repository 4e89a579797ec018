#include "shardplan/io/json_text.hpp"
