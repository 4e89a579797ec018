#include "shardplan/core/run.hpp"
