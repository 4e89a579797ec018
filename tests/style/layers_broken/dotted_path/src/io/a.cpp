#include "../plan/a.hpp"
