// Nothing: what is timed around it is the driver, the bus and the wait.
//
// Grid and block: 1 x 1
// Bytes: none
// Atomics: none

extern "C" __global__ void __launch_bounds__(1) empty() {}
