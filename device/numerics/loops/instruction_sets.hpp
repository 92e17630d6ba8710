#pragma once

/// Loops over flat buffers are compiled for AVX-512, for AVX2 and for any x86-64; the processor's best is taken when
/// the program starts. A loop so marked computes the same IEEE operations in each of them, without fused multiply-adds
/// (-ffp-contract=off), hence the same bits.
namespace hcclsim::device {

/// Before a function. Functions that it calls in a loop must be inlined to be compiled likewise: INLINE.
#if defined(__SANITIZE_THREAD__)
#define FOR_EVERY_PROCESSOR  // the choice is made before the thread sanitizer has started, which ends the program
#else
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define INLINE [[gnu::always_inline]] inline

}  // namespace hcclsim::device
