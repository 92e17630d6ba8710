#include "device/workload.hpp"
