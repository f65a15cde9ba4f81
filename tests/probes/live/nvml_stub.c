/* A libnvidia-ml of one card: known answers, so that pynvml's own bindings and our units can be checked without a
 * driver. Functions that are missing here are missing in old drivers too. Nothing in it sets anything. */
#include <string.h>

typedef void *Device;
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

int nvmlInitWithFlags(unsigned flags) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return "?"; }

static Device opened = (Device)1;
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
  *device = opened;
  return index == 0 ? SUCCESS : 2;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
  *device = strncmp(uuid, "MIG-", 4) == 0 ? (Device)2 : opened;
  return SUCCESS;
}
int nvmlDeviceIsMigDeviceHandle(Device device, unsigned *is) { *is = device == (Device)2; return SUCCESS; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device slice, Device *device) { *device = opened; return SUCCESS; }

#define TEXT(function, text) \
  int function(Device device, char *buffer, unsigned size) { strncpy(buffer, text, size); return SUCCESS; }
TEXT(nvmlDeviceGetName, "NVIDIA H200")
TEXT(nvmlDeviceGetUUID, "GPU-0000")
TEXT(nvmlDeviceGetVbiosVersion, "96.00")
int nvmlSystemGetDriverVersion(char *buffer, unsigned size) { strncpy(buffer, "580.126.20", size); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return SUCCESS; }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } PciInfo;
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) { strcpy(info->bus_id, "00000000:3B:00.0"); return SUCCESS; }

typedef struct { unsigned long long total, free, used; } Memory;
int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) { *memory = (Memory){1000, 300, 700}; return SUCCESS; }
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
int nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) {
  memory->total = 1000; memory->reserved = 600; memory->used = 100;
  return SUCCESS;
}

int nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) { return NOT_SUPPORTED; }
typedef struct { unsigned gpu, memory; } Utilization;
int nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) { *rates = (Utilization){25, 5}; return SUCCESS; }
typedef struct { unsigned pid; unsigned long long memory; unsigned instance, compute; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count, Process *processes) {
  if (processes == 0) { *count = 1; return INSUFFICIENT_SIZE; }
  processes[0].pid = 77; processes[0].memory = 4096;
  *count = 1;
  return SUCCESS;
}

#define NUMBER(function, number) \
  int function(Device device, unsigned *value) { *value = number; return SUCCESS; }
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 1)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 8)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, 3)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 450000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
NUMBER(nvmlDeviceGetPersistenceMode, 1)
int nvmlDeviceGetRetiredPagesPendingStatus(Device device, unsigned *pending) { return NOT_SUPPORTED; }
int nvmlDeviceGetRetiredPages(Device device, int cause, unsigned *count, unsigned long long *pages) {
  unsigned known = cause == 0 ? 2 : 1;
  if (*count < known) { *count = known; return INSUFFICIENT_SIZE; }
  *count = known;
  return SUCCESS;
}
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned *value) { *value = 41; return SUCCESS; }
int nvmlDeviceGetClockInfo(Device device, int clock, unsigned *mhz) { *mhz = clock == 1 ? 1980 : 0; return SUCCESS; }
int nvmlDeviceGetMaxClockInfo(Device device, int clock, unsigned *mhz) { *mhz = clock == 1 ? 1985 : 0; return SUCCESS; }
int nvmlDeviceGetTotalEccErrors(Device device, int error, int counter, unsigned long long *count) {
  *count = error == 1 ? (counter == 0 ? 5 : 6) : 99;
  return SUCCESS;
}
int nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed) {
  *corrected = 1; *uncorrected = 2; *pending = 1; *failed = 0;
  return SUCCESS;
}
typedef struct { unsigned version; unsigned long long counts[11]; unsigned exceeded; } Sram;
int nvmlDeviceGetSramEccErrorStatus(Device device, Sram *status) { status->exceeded = 1; return SUCCESS; }

/* The name before driver 535; the newer one is missing, as it is there. */
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *mask) {
  *mask = 0x04 | 0x40;
  return SUCCESS;
}
