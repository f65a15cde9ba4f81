// Default rounding, denormals kept, while it lives: some other library in the process may have changed them.
#pragma once

#include <cfenv>

namespace dyno::emulator {

class FloatingPointMode {
public:
    FloatingPointMode() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~FloatingPointMode() { std::fesetenv(&saved_); }
    FloatingPointMode(const FloatingPointMode&) = delete;
    FloatingPointMode& operator=(const FloatingPointMode&) = delete;

private:
    std::fenv_t saved_;
};

}  // namespace dyno::emulator
