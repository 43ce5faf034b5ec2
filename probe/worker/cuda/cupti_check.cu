/* cupti_check -- that cupti_api.h says what the headers of this toolkit say: no code. */
#include <cstddef>

extern "C" {
#include "probe/worker/cupti_api.h"
}

#if __has_include(<cupti_range_profiler.h>) && __has_include(<cupti_profiler_host.h>)
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

/* The size that the caller says, and where a member stands. */
#define SIZE(ours, last, theirs) static_assert(CUPTI_SIZE(ours, last) == theirs##_STRUCT_SIZE, #ours)
#define PLACE(ours, a, theirs, b)                                                                                      \
    static_assert(offsetof(ours, a) == offsetof(theirs, b) && sizeof(((ours *)0)->a) == sizeof(((theirs *)0)->b),      \
                  #ours "." #a)

SIZE(cupti_plain, reserved, CUpti_Profiler_Initialize_Params);
SIZE(cupti_plain, reserved, CUpti_Profiler_DeInitialize_Params);
SIZE(cupti_supported, api, CUpti_Profiler_DeviceSupported_Params);
PLACE(cupti_supported, device, CUpti_Profiler_DeviceSupported_Params, cuDevice);
PLACE(cupti_supported, all, CUpti_Profiler_DeviceSupported_Params, isSupported);
PLACE(cupti_supported, architecture, CUpti_Profiler_DeviceSupported_Params, architecture);
PLACE(cupti_supported, sli, CUpti_Profiler_DeviceSupported_Params, sli);
PLACE(cupti_supported, virtual_card, CUpti_Profiler_DeviceSupported_Params, vGpu);
PLACE(cupti_supported, confidential, CUpti_Profiler_DeviceSupported_Params, confidentialCompute);
PLACE(cupti_supported, mining, CUpti_Profiler_DeviceSupported_Params, cmp);
PLACE(cupti_supported, wsl, CUpti_Profiler_DeviceSupported_Params, wsl);
SIZE(cupti_chip, name, CUpti_Device_GetChipName_Params);
PLACE(cupti_chip, device, CUpti_Device_GetChipName_Params, deviceIndex);
SIZE(cupti_host_open, host, CUpti_Profiler_Host_Initialize_Params);
PLACE(cupti_host_open, kind, CUpti_Profiler_Host_Initialize_Params, profilerType);
PLACE(cupti_host_open, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
PLACE(cupti_host_open, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
SIZE(cupti_host, host, CUpti_Profiler_Host_Deinitialize_Params);
SIZE(cupti_host_metrics, n, CUpti_Profiler_Host_ConfigAddMetrics_Params);
PLACE(cupti_host_metrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SIZE(cupti_host_size, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params);
SIZE(cupti_host_image, image, CUpti_Profiler_Host_GetConfigImage_Params);
PLACE(cupti_host_image, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SIZE(cupti_host_passes, passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
PLACE(cupti_host_passes, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SIZE(cupti_host_values, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
PLACE(cupti_host_values, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
PLACE(cupti_host_values, data_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
PLACE(cupti_host_values, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
PLACE(cupti_host_values, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SIZE(cupti_range_open, ranges, CUpti_RangeProfiler_Enable_Params);
PLACE(cupti_range_open, context, CUpti_RangeProfiler_Enable_Params, ctx);
SIZE(cupti_range, ranges, CUpti_RangeProfiler_Disable_Params);
SIZE(cupti_range, ranges, CUpti_RangeProfiler_Start_Params);
SIZE(cupti_range, ranges, CUpti_RangeProfiler_PopRange_Params);
SIZE(cupti_range_size, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params);
PLACE(cupti_range_size, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
PLACE(cupti_range_size, ranges_n, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
PLACE(cupti_range_size, nodes_n, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SIZE(cupti_range_data, data, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
PLACE(cupti_range_data, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
SIZE(cupti_range_config, level, CUpti_RangeProfiler_SetConfig_Params);
PLACE(cupti_range_config, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
PLACE(cupti_range_config, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
PLACE(cupti_range_config, data_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
PLACE(cupti_range_config, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
PLACE(cupti_range_config, range, CUpti_RangeProfiler_SetConfig_Params, range);
PLACE(cupti_range_config, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
PLACE(cupti_range_config, ranges_n, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
PLACE(cupti_range_config, levels_n, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
PLACE(cupti_range_config, level_least, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
PLACE(cupti_range_config, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SIZE(cupti_range_push, name, CUpti_RangeProfiler_PushRange_Params);
SIZE(cupti_range_stop, all_passes, CUpti_RangeProfiler_Stop_Params);
PLACE(cupti_range_stop, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
SIZE(cupti_range_decode, dropped, CUpti_RangeProfiler_DecodeData_Params);
SIZE(cupti_range_info, ranges_n, CUpti_RangeProfiler_GetCounterDataInfo_Params);
PLACE(cupti_range_info, bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);

#define NUMBER(ours, theirs) static_assert((int)ours == (int)theirs, #ours)
NUMBER(CUPTI_DONE, CUPTI_SUCCESS);
NUMBER(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
NUMBER(CUPTI_NO_SUCH_METRIC, CUPTI_ERROR_INVALID_METRIC_NAME);
NUMBER(CUPTI_NO_PRIVILEGE, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
NUMBER(CUPTI_NO_PRIVILEGE_VIRTUAL, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
NUMBER(CUPTI_CONFIDENTIAL, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
NUMBER(CUPTI_MIG, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
NUMBER(CUPTI_NO_SUCH_CHIP, CUPTI_ERROR_INVALID_CHIP_NAME);
NUMBER(CUPTI_RANGE_PROFILER, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
NUMBER(CUPTI_USER_RANGE, CUPTI_UserRange);
NUMBER(CUPTI_USER_REPLAY, CUPTI_UserReplay);
NUMBER(CUPTI_API_RANGES, CUPTI_PROFILER_RANGE_PROFILING);
NUMBER(CUPTI_SUPPORTED, CUPTI_PROFILER_CONFIGURATION_SUPPORTED);
NUMBER(CUPTI_UNKNOWN, CUPTI_PROFILER_CONFIGURATION_UNKNOWN);
#endif
