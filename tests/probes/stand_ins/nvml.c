/* A stand-in for libnvidia-ml.so.1: the functions that the worker reaches through pynvml, answered from a script.

   -DWITHOUT_<function> leaves one out, as an old driver does. Structures and codes as in nvml.h. */

#include "script.h"

#define SCRIPT "STAND_IN_NVML"

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, VERSION = 25 };

typedef Section *Device;
typedef unsigned long long u64;

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;
typedef struct {
    u64 total, free, used;
} Memory;
typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} MemoryV2;
typedef struct {
    unsigned gpu, memory;
} Utilization;
typedef struct {
    unsigned pid;
    u64 used;
    unsigned gpu_instance, compute_instance;
} Process;
typedef struct {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
} Fabric;
typedef struct {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
} FabricV;

/* MIG instances are devices of their own, made when they are asked for. */
static Section instances[64];
static Line instance_lines[64];
static int instances_made;

#define GATE(function, section)                                                                                       \
    read_script(SCRIPT);                                                                                              \
    do {                                                                                                              \
        int code = failure_of(section, #function);                                                                    \
        if (code)                                                                                                     \
            return code;                                                                                              \
    } while (0)

/* Library */

static int initialise(const char *function)
{
    read_script(SCRIPT);
    return failure_of(NULL, function);
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return initialise("nvmlInit");
}

int nvmlInit_v2(void)
{
    return initialise("nvmlInit");
}

int nvmlShutdown(void)
{
    GATE(nvmlShutdown, NULL);
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {
        {0, "Success"},
        {1, "Uninitialized"},
        {2, "Invalid Argument"},
        {3, "Not Supported"},
        {4, "Insufficient Permissions"},
        {6, "Not Found"},
        {7, "Insufficient Size"},
        {9, "Driver Not Loaded"},
        {10, "Timeout"},
        {12, "NVML Shared Library Not Found"},
        {13, "Function Not Found"},
        {15, "GPU is lost"},
        {16, "GPU requires reset"},
        {17, "Operation was blocked by the operating system"},
        {18, "Driver/library version mismatch"},
        {999, "Unknown Error"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "Unknown Error code";
}

static int give_text(const Section *section, const char *key, char *buffer, unsigned size)
{
    const char *text = text_of(section, key, 0);
    if (!text)
        return NOT_SUPPORTED;
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned size)
{
    GATE(nvmlSystemGetDriverVersion, NULL);
    return give_text(&library, "driver_version", buffer, size);
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    GATE(nvmlSystemGetCudaDriverVersion, NULL);
    *version = (int)number_or(&library, "cuda_version", 0);
    return SUCCESS;
}

int nvmlSystemGetProcessName(unsigned pid, char *buffer, unsigned size)
{
    GATE(nvmlSystemGetProcessName, NULL);
    char key[32];
    snprintf(key, sizeof key, "process_name_%u", pid);
    return give_text(&library, key, buffer, size) == SUCCESS ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    GATE(nvmlDeviceGetCount, NULL);
    *count = (unsigned)number_or(&library, "device_count", device_count);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device)
{
    read_script(SCRIPT);
    if (index >= (unsigned)device_count)
        return INVALID_ARGUMENT;
    GATE(nvmlDeviceGetHandleByIndex, &devices[index]);
    *device = &devices[index];
    return SUCCESS;
}

static int find_device(const char *key, const char *value, Device *device)
{
    read_script(SCRIPT);
    for (int i = 0; i < device_count; i++) {
        const char *own = text_of(&devices[i], key, 0);
        if (own && !strcasecmp(own, value)) {
            *device = &devices[i];
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device)
{
    return find_device("uuid", uuid, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device *device)
{
    return find_device("pci_bus_id", bus_id, device);
}

/* Device: texts */

#define TEXT(function, key)                                                                                           \
    int function(Device device, char *buffer, unsigned size)                                                          \
    {                                                                                                                 \
        GATE(function, device);                                                                                       \
        return give_text(device, key, buffer, size);                                                                  \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")

int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info)
{
    GATE(nvmlDeviceGetPciInfo, device);
    memset(info, 0, sizeof *info);
    info->device_id = (unsigned)number_or(device, "pci_device_id", 0);
    return give_text(device, "pci_bus_id", info->bus_id, sizeof info->bus_id);
}

/* Device: numbers */

static int give(const Section *section, const char *key, int n, u64 *value)
{
    /* A value may be a list: "1 0". */
    const char *text = text_of(section, key, 0);
    char *end;
    if (!text)
        return NOT_SUPPORTED;
    do {
        *value = strtoull(text, &end, 0);
        if (end == text)
            return NOT_SUPPORTED;
        text = end;
    } while (n--);
    return SUCCESS;
}

#define NUMBER(function, type, key)                                                                                   \
    int function(Device device, type *value)                                                                          \
    {                                                                                                                 \
        u64 number;                                                                                                   \
        GATE(function, device);                                                                                       \
        int code = give(device, key, 0, &number);                                                                     \
        if (code == SUCCESS)                                                                                          \
            *value = (type)number;                                                                                    \
        return code;                                                                                                  \
    }

NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_draw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "power_limit_default")
NUMBER(nvmlDeviceGetPerformanceState, unsigned, "performance_state")
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence_mode")
NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, "retired_pages_pending")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_generation_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_width_max")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "event_reasons")
#ifndef WITHOUT_nvmlDeviceGetCurrentClocksEventReasons
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "event_reasons")
#endif
#ifndef WITHOUT_nvmlDeviceGetMaxMigDeviceCount
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, "mig_count")
#endif

#define PAIR(function, type, key)                                                                                     \
    int function(Device device, type *first, type *second)                                                            \
    {                                                                                                                 \
        u64 one, two;                                                                                                 \
        GATE(function, device);                                                                                       \
        if (give(device, key, 0, &one) != SUCCESS || give(device, key, 1, &two) != SUCCESS)                           \
            return NOT_SUPPORTED;                                                                                     \
        *first = (type)one;                                                                                           \
        *second = (type)two;                                                                                          \
        return SUCCESS;                                                                                               \
    }

PAIR(nvmlDeviceGetCudaComputeCapability, int, "compute_capability")
#ifndef WITHOUT_nvmlDeviceGetMigMode
PAIR(nvmlDeviceGetMigMode, unsigned, "mig_mode")
#endif

/* Functions with a selector: clock 1 is SM and 2 memory. */

#define BY_CLOCK(function, sm, memory)                                                                                \
    int function(Device device, unsigned clock, unsigned *value)                                                      \
    {                                                                                                                 \
        u64 number;                                                                                                   \
        GATE(function, device);                                                                                       \
        int code = give(device, clock == 1 ? sm : memory, 0, &number);                                                \
        if (code == SUCCESS)                                                                                          \
            *value = (unsigned)number;                                                                                \
        return code;                                                                                                  \
    }

BY_CLOCK(nvmlDeviceGetClockInfo, "clock_sm", "")
BY_CLOCK(nvmlDeviceGetMaxClockInfo, "clock_sm_max", "")
BY_CLOCK(nvmlDeviceGetTemperatureThreshold, "temperature_slowdown", "")

int nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *value)
{
    u64 number;
    GATE(nvmlDeviceGetTemperature, device);
    int code = sensor == 0 ? give(device, "temperature", 0, &number) : INVALID_ARGUMENT;
    if (code == SUCCESS)
        *value = (unsigned)number;
    return code;
}

int nvmlDeviceGetTotalEccErrors(Device device, unsigned kind, unsigned counter, u64 *value)
{
    GATE(nvmlDeviceGetTotalEccErrors, device);
    return kind == 1 && counter == 0 ? give(device, "ecc_uncorrected_volatile", 0, value) : NOT_SUPPORTED;
}

/* Structures and lists */

int nvmlDeviceGetMemoryInfo(Device device, Memory *memory)
{
    GATE(nvmlDeviceGetMemoryInfo, device);
    u64 reserved = number_or(device, "memory_reserved", 0);
    if (give(device, "memory_total", 0, &memory->total) != SUCCESS)
        return NOT_SUPPORTED;
    memory->used = number_or(device, "memory_used", 0) + reserved;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

#ifndef WITHOUT_nvmlDeviceGetMemoryInfo_v2
int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2 *memory)
{
    GATE(nvmlDeviceGetMemoryInfo, device);
    if (memory->version != (sizeof *memory | 2u << 24))
        return VERSION;
    if (give(device, "memory_total", 0, &memory->total) != SUCCESS)
        return NOT_SUPPORTED;
    memory->reserved = number_or(device, "memory_reserved", 0);
    memory->used = number_or(device, "memory_used", 0);
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}
#endif

int nvmlDeviceGetUtilizationRates(Device device, Utilization *utilization)
{
    u64 gpu;
    GATE(nvmlDeviceGetUtilizationRates, device);
    if (give(device, "utilization", 0, &gpu) != SUCCESS)
        return NOT_SUPPORTED;
    utilization->gpu = (unsigned)gpu;
    utilization->memory = 0;
    return SUCCESS;
}

static int number_of_values(const Section *section, const char *key)
{
    int n = 0;
    while (text_of(section, key, n))
        n++;
    return n;
}

static int list_processes(Device device, const char *key, unsigned *count, Process *processes)
{
    unsigned room = *count;
    unsigned there = (unsigned)number_of_values(device, key);
    *count = (unsigned)number_or(device, "process_count", there);
    if (room < *count || (!processes && *count))
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count && i < there; i++) {
        memset(&processes[i], 0xff, sizeof *processes); /* instances: not in MIG mode */
        processes[i].pid = 0;
        processes[i].used = ~0ull; /* NVML_VALUE_NOT_AVAILABLE */
        sscanf(text_of(device, key, (int)i), "%u %llu", &processes[i].pid, &processes[i].used);
    }
    return SUCCESS;
}

#define PROCESSES(function, key)                                                                                      \
    int function(Device device, unsigned *count, Process *processes)                                                  \
    {                                                                                                                 \
        GATE(function, device);                                                                                       \
        return list_processes(device, key, count, processes);                                                         \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "compute_process")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics_process")
#ifndef WITHOUT_nvmlDeviceGetComputeRunningProcesses_v3
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "compute_process")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics_process")
#endif

#ifndef WITHOUT_nvmlDeviceGetRemappedRows
int nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed)
{
    unsigned *values[] = {corrected, uncorrected, pending, failed};
    GATE(nvmlDeviceGetRemappedRows, device);
    for (int i = 0; i < 4; i++) {
        u64 number;
        if (give(device, "remapped_rows", i, &number) != SUCCESS)
            return NOT_SUPPORTED;
        *values[i] = (unsigned)number;
    }
    return SUCCESS;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetMigDeviceHandleByIndex
int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *instance)
{
    GATE(nvmlDeviceGetMigDeviceHandleByIndex, device);
    const char *uuid = text_of(device, "mig_uuid", (int)index);
    if (!uuid || instances_made == 64)
        return NOT_FOUND;
    instance_lines[instances_made] = (Line){"uuid", (char *)uuid};
    instances[instances_made] = (Section){&instance_lines[instances_made], 1};
    *instance = &instances[instances_made++];
    return SUCCESS;
}
#endif

int nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *state)
{
    u64 number;
    GATE(nvmlDeviceGetNvLinkState, device);
    if (!text_of(device, "nvlinks", 0))
        return NOT_SUPPORTED;
    if (give(device, "nvlinks", (int)link, &number) != SUCCESS)
        return INVALID_ARGUMENT; /* as drivers do past the last link */
    *state = (unsigned)number;
    return SUCCESS;
}

#ifndef WITHOUT_nvmlDeviceGetGpuFabricInfo
int nvmlDeviceGetGpuFabricInfo(Device device, Fabric *fabric)
{
    u64 state, status;
    GATE(nvmlDeviceGetGpuFabricInfo, device);
    if (give(device, "fabric", 0, &state) != SUCCESS || give(device, "fabric", 1, &status) != SUCCESS)
        return NOT_SUPPORTED;
    memset(fabric, 0, sizeof *fabric);
    fabric->state = (unsigned char)state;
    fabric->status = (int)status;
    return SUCCESS;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetGpuFabricInfoV
int nvmlDeviceGetGpuFabricInfoV(Device device, FabricV *fabric)
{
    GATE(nvmlDeviceGetGpuFabricInfoV, device);
    if (fabric->version != (sizeof *fabric | 2u << 24))
        return VERSION;
    u64 state, status;
    if (give(device, "fabric", 0, &state) != SUCCESS || give(device, "fabric", 1, &status) != SUCCESS)
        return NOT_SUPPORTED;
    fabric->state = (unsigned char)state;
    fabric->status = (int)status;
    return SUCCESS;
}
#endif
