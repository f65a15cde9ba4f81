// Every kernel family: what NVRTC and the emulator's compiler start from.
#pragma once

#include "binning.cuh"
#include "differentiate.cuh"
#include "predict.cuh"
#include "quantise.cuh"
#include "route.cuh"
