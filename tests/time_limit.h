// CPU seconds that a test of speed allows: ThreadSanitizer makes everything ten times as slow,
// AddressSanitizer three times.
#pragma once

namespace railyard::tests {

#ifdef __SANITIZE_THREAD__
inline constexpr int kSlowdown = 12;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowdown = 4;
#else
inline constexpr int kSlowdown = 1;
#endif

}  // namespace railyard::tests
