#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program with a message if a function of ACL or HCCL has failed.
#define CHECK(call)                                                            \
  do {                                                                         \
    const int check_status = static_cast<int>(call);                           \
    if (check_status != 0) {                                                   \
      std::fprintf(stderr, "%s failed with status %d\n", #call, check_status); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)
