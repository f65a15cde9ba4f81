#include "context.hpp"

#include <cstdint>

namespace dyno::emulator {

// ---- what AddressSanitizer has to be told ---------------------------------------------------------------------------

#if defined(__SANITIZE_ADDRESS__)
thread_local Context* Context::suspended_ = nullptr;

__attribute__((noinline)) void Context::depart(Context& to) {
    suspended_ = this;
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.size_);
}

__attribute__((noinline)) void Context::arrive() {
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &size);
    suspended_->bottom_ = bottom;
    suspended_->size_ = size;
}
#else
void Context::depart(Context&) {}
void Context::arrive() {}
#endif

void Context::begin(void* context) {
    auto* self = static_cast<Context*>(context);
    self->arrive();
    self->entry_(self->argument_);
    __builtin_unreachable();
}

#if !defined(DYNO_UCONTEXT)
// ---- x86-64: the callee-saved registers of the System V calling convention ------------------------------------------

asm(R"(
.text
.p2align 4
.hidden dyno_emulator_switch
.globl dyno_emulator_switch
.type dyno_emulator_switch, @function
dyno_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size dyno_emulator_switch, .-dyno_emulator_switch

.p2align 4
.hidden dyno_emulator_begin
.globl dyno_emulator_begin
.type dyno_emulator_begin, @function
dyno_emulator_begin:
    movq %r12, %rdi
    xorl %ebp, %ebp
    call *%r13
    ud2
.size dyno_emulator_begin, .-dyno_emulator_begin
)");

extern "C" void dyno_emulator_switch(void** stack_pointer_of_caller, void* stack_pointer);
extern "C" void dyno_emulator_begin();

void Context::prepare(std::byte* stack, std::size_t size, void (*entry)(void*), void* argument) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, size);  // what an abandoned fiber left behind
    bottom_ = stack;
    size_ = size;
#endif
    entry_ = entry;
    argument_ = argument;
    auto top = reinterpret_cast<std::uintptr_t>(stack + size) & ~std::uintptr_t{15};
    auto* frame = reinterpret_cast<void**>(top) - 9;  // leaves the stack aligned to 16 at the call in begin
    frame[0] = frame[1] = frame[4] = frame[5] = nullptr;       // r15 r14 rbx rbp
    frame[2] = reinterpret_cast<void*>(&Context::begin);       // r13
    frame[3] = this;                                           // r12
    frame[6] = reinterpret_cast<void*>(&dyno_emulator_begin);  // the return address
    frame[7] = nullptr;
    stack_pointer_ = frame;
}

__attribute__((noinline)) void Context::change(Context& from, Context& to) {
    from.depart(to);
    dyno_emulator_switch(&from.stack_pointer_, to.stack_pointer_);
    from.arrive();
}

#else
// ---- elsewhere ------------------------------------------------------------------------------------------------------

void Context::prepare(std::byte* stack, std::size_t size, void (*entry)(void*), void* argument) {
    entry_ = entry;
    argument_ = argument;
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = size;
    context_.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    using Unsigned = unsigned;
    void (*start)(Unsigned, Unsigned) = [](Unsigned high, Unsigned low) {
        begin(reinterpret_cast<void*>((static_cast<std::uint64_t>(high) << 32) | low));
    };
    makecontext(&context_, reinterpret_cast<void (*)()>(start), 2, static_cast<Unsigned>(self >> 32),
                static_cast<Unsigned>(self));
}

__attribute__((noinline)) void Context::change(Context& from, Context& to) {
    from.depart(to);
    swapcontext(&from.context_, &to.context_);
    from.arrive();
}
#endif

}  // namespace dyno::emulator
