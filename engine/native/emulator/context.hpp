// A suspended fiber, and the switch from one to another: a few instructions on x86-64, ucontext elsewhere.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) && !defined(DYNO_UCONTEXT)
#define DYNO_UCONTEXT
#endif

#if defined(DYNO_UCONTEXT)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace dyno::emulator {

class Context {
public:
    // Whatever runs now; a place to come back to.
    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // Makes this the beginning of entry(argument) on a stack; entry never returns.
    void prepare(std::byte* stack, std::size_t size, void (*entry)(void*), void* argument);

    // Suspends the caller as `from` and resumes `to`. One function, never inlined: all fibers then suspend at the same
    // return address, which is what the processor predicts.
    static void change(Context& from, Context& to);

private:
#if defined(DYNO_UCONTEXT)
    ucontext_t context_;
#else
    void* stack_pointer_ = nullptr;
#endif
#if defined(__SANITIZE_ADDRESS__)
    static thread_local Context* suspended_;
    const void* bottom_ = nullptr;
    std::size_t size_ = 0;
    void* fake_stack_ = nullptr;
#endif
    void depart(Context& to);
    void arrive();
    void (*entry_)(void*) = nullptr;
    void* argument_ = nullptr;
    static void begin(void* context);
};

}  // namespace dyno::emulator
