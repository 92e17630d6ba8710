#pragma once

/// Loops over flat buffers are compiled for AVX-512, for AVX2 and for any x86-64; the best version for the processor is
/// chosen when the program starts. A loop marked in this way computes the same IEEE operations in every version,
/// without fused multiply-adds (-ffp-contract=off), and so gives the same bits.
namespace hcclsim::device {

/// To be written before a function. Functions that it calls in a loop must be inlined (INLINE), so that they are
/// compiled in the same versions.
#if defined(__SANITIZE_THREAD__)
#define FOR_EVERY_PROCESSOR  // the choice is made before the thread sanitizer has started, which ends the program
#else
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define INLINE [[gnu::always_inline]] inline

}  // namespace hcclsim::device
