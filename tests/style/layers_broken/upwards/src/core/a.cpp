#include "shardplan/plan/estimate.hpp"
