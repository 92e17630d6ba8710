#include <cstdio>

int main() { return std::puts("hcclsim") < 0 ? 1 : 0; }
