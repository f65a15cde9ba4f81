// Every kernel family: what NVRTC and the emulator's compiler start from.
#pragma once

#include "binning.cuh"
#include "build.cuh"
#include "choose.cuh"
#include "close.cuh"
#include "differentiate.cuh"
#include "find.cuh"
#include "gather.cuh"
#include "level.cuh"
#include "open.cuh"
#include "partition.cuh"
#include "predict.cuh"
#include "quantise.cuh"
#include "route.cuh"
