/* FMI 3.0, model exchange and co-simulation, around the instance of runtime.h; written by dalembert.
   Types and signatures: FMI 3.0.2, section 2.2; <https://fmi-standard.org>. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef void *Handle;
typedef void *Environment;
typedef void *State;
typedef unsigned int Reference;
typedef const char *String;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef void (*Log)(Environment, Status, String, String);

typedef struct {
    da_instance model;
    Log log;
    Environment environment;
    int co_simulation;
    int event_mode_used;
} Unit;

static Status told(Unit *u, int code)
{
    if (code != DA_OK && u->log) {
        u->log(u->environment, (Status)code, code == DA_DISCARD ? "logStatusDiscard" : "logStatusError",
               u->model.message);
    }
    return (Status)code;
}

#define FMI(name) fmi3##name
#define FMI_GetFMUstate fmi3GetFMUState
#define FMI_SetFMUstate fmi3SetFMUState
#define FMI_FreeFMUstate fmi3FreeFMUState
#define FMI_SerializedFMUstateSize fmi3SerializedFMUStateSize
#define FMI_SerializeFMUstate fmi3SerializeFMUState
#define FMI_DeSerializeFMUstate fmi3DeserializeFMUState
#define FMI_GetDerivatives fmi3GetContinuousStateDerivatives
typedef uint8_t Byte;

#include "common.h"

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT Status fmi3SetDebugLogging(Handle handle, bool on, size_t n, const String categories[])
{
    (void)handle, (void)on, (void)n, (void)categories;
    return OK;
}

static Handle made(String token, Environment environment, Log log, int co_simulation)
{
    Unit *u;
    if (!token || strcmp(token, DA_TOKEN) != 0) {
        if (log) {
            log(environment, ERROR, "logStatusError", "the instantiation token is not that of this unit");
        }
        return 0;
    }
    u = (Unit *)calloc(1, sizeof *u);
    if (u) {
        da_reset(&u->model);
        u->log = log;
        u->environment = environment;
        u->co_simulation = co_simulation;
    }
    return u;
}

EXPORT Handle fmi3InstantiateModelExchange(String name, String token, String resources, bool visible, bool logging,
                                             Environment environment, Log log)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    return made(token, environment, log, 0);
}

EXPORT Handle fmi3InstantiateCoSimulation(String name, String token, String resources, bool visible, bool logging,
                                            bool event_mode, bool early_return, const Reference intermediate[],
                                            size_t n, Environment environment, Log log, void *update)
{
    Handle handle = made(token, environment, log, 1);
    (void)name, (void)resources, (void)visible, (void)logging, (void)early_return, (void)intermediate, (void)n;
    (void)update;
    if (handle) {
        ((Unit *)handle)->event_mode_used = event_mode;
    }
    return handle;
}

EXPORT Handle fmi3InstantiateScheduledExecution(String name, String token, String resources, bool visible,
                                                  bool logging, Environment environment, Log log, void *clock,
                                                  void *lock, void *unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)log;
    (void)clock, (void)lock, (void)unlock;
    return 0;
}

EXPORT Status fmi3EnterInitializationMode(Handle handle, bool tolerance_defined, double tolerance, double start,
                                          bool stop_defined, double stop)
{
    UNIT;
    (void)tolerance_defined, (void)tolerance, (void)stop_defined, (void)stop;
    u->model.value[0] = start;
    u->model.initialising = 1;
    u->model.fresh = 0;
    return OK;
}

EXPORT Status fmi3EnterStepMode(Handle handle) { return handle ? OK : ERROR; }
EXPORT Status fmi3EnterConfigurationMode(Handle handle) { return handle ? OK : ERROR; }
EXPORT Status fmi3ExitConfigurationMode(Handle handle) { return handle ? OK : ERROR; }

EXPORT Status fmi3GetFloat64(Handle handle, const Reference r[], size_t n, double x[], size_t nx)
{
    UNIT;
    (void)nx;
    return told(u, da_get(&u->model, r, n, x));
}

EXPORT Status fmi3SetFloat64(Handle handle, const Reference r[], size_t n, const double x[], size_t nx)
{
    UNIT;
    (void)nx;
    return told(u, da_set(&u->model, r, n, x));
}

/* Types that no variable of a mechanism has. */
#define NONE(word, kind)                                                                                            \
    EXPORT Status fmi3Get##word(Handle handle, const Reference r[], size_t n, kind x[], size_t nx)              \
    {                                                                                                               \
        (void)handle, (void)r, (void)x, (void)nx;                                                                 \
        return n ? ERROR : OK;                                                                                      \
    }                                                                                                               \
    EXPORT Status fmi3Set##word(Handle handle, const Reference r[], size_t n, const kind x[], size_t nx)        \
    {                                                                                                               \
        (void)handle, (void)r, (void)x, (void)nx;                                                                 \
        return n ? ERROR : OK;                                                                                      \
    }
NONE(Float32, float)
NONE(Int8, int8_t)
NONE(UInt8, uint8_t)
NONE(Int16, int16_t)
NONE(UInt16, uint16_t)
NONE(Int32, int32_t)
NONE(UInt32, uint32_t)
NONE(Int64, int64_t)
NONE(UInt64, uint64_t)
NONE(Boolean, bool)
NONE(String, String)

EXPORT Status fmi3GetBinary(Handle i, const Reference r[], size_t n, size_t sizes[], const uint8_t *x[], size_t nx)
{
    (void)i, (void)r, (void)sizes, (void)x, (void)nx;
    return n ? ERROR : OK;
}

EXPORT Status fmi3SetBinary(Handle i, const Reference r[], size_t n, const size_t sizes[], const uint8_t *const x[],
                            size_t nx)
{
    (void)i, (void)r, (void)sizes, (void)x, (void)nx;
    return n ? ERROR : OK;
}

EXPORT Status fmi3GetClock(Handle i, const Reference r[], size_t n, bool x[])
{
    (void)i, (void)r, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi3SetClock(Handle i, const Reference r[], size_t n, const bool x[])
{
    (void)i, (void)r, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi3GetNumberOfVariableDependencies(Handle i, Reference r, size_t *n)
{
    (void)i, (void)r, (void)n;
    return ERROR;
}

EXPORT Status fmi3GetVariableDependencies(Handle i, Reference dependent, size_t elements[], Reference independents[],
                                          size_t element_indices[], int kinds[], size_t n)
{
    (void)i, (void)dependent, (void)elements, (void)independents, (void)element_indices, (void)kinds, (void)n;
    return ERROR;
}

EXPORT Status fmi3GetDirectionalDerivative(Handle handle, const Reference unknowns[], size_t n,
                                           const Reference knowns[], size_t k, const double seed[], size_t ns,
                                           double x[], size_t nx)
{
    UNIT;
    (void)ns, (void)nx;
    return told(u, da_directional(&u->model, unknowns, n, knowns, k, seed, x));
}

EXPORT Status fmi3GetAdjointDerivative(Handle handle, const Reference unknowns[], size_t n,
                                       const Reference knowns[], size_t k, const double seed[], size_t ns, double x[],
                                       size_t nx)
{
    UNIT;
    (void)ns, (void)nx;
    return told(u, da_adjoint(&u->model, unknowns, n, knowns, k, seed, x));
}

EXPORT Status fmi3UpdateDiscreteStates(Handle handle, bool *again, bool *terminate, bool *nominals, bool *values,
                                       bool *next_defined, double *next)
{
    UNIT;
    *again = *terminate = *nominals = *next_defined = false;
    (void)next;
    *values = da_off(&u->model) != 0;
    return *values ? told(u, da_hold(&u->model)) : OK;
}

EXPORT Status fmi3CompletedIntegratorStep(Handle handle, bool no_return, bool *event_mode, bool *terminate)
{
    UNIT;
    (void)no_return;
    *event_mode = da_off(&u->model) != 0;
    *terminate = false;
    return OK;
}

EXPORT Status fmi3GetNumberOfEventIndicators(Handle handle, size_t *n)
{
    (void)handle;
    *n = 0;
    return OK;
}

EXPORT Status fmi3GetNumberOfContinuousStates(Handle handle, size_t *n)
{
    (void)handle;
    *n = DA_NX;
    return OK;
}

EXPORT Status fmi3GetOutputDerivatives(Handle i, const Reference r[], size_t n, const int32_t orders[], double x[],
                                       size_t nx)
{
    (void)i, (void)r, (void)n, (void)orders, (void)x, (void)nx;
    return ERROR;
}

EXPORT Status fmi3DoStep(Handle handle, double t, double step, bool no_set, bool *event, bool *terminate,
                         bool *early, double *last)
{
    UNIT;
    int bad;
    (void)no_set;
    *event = *terminate = *early = false;
    u->model.value[0] = t;
    bad = da_advance(&u->model, t + step);
    *last = u->model.value[0];
    if (bad) {
        *terminate = true;
        *early = true;
    }
    return told(u, bad);
}

EXPORT Status fmi3ActivateModelPartition(Handle i, Reference r, double t)
{
    (void)i, (void)r, (void)t;
    return ERROR;
}

/* Clocks, of which there are none. */
EXPORT Status fmi3GetIntervalDecimal(Handle i, const Reference r[], size_t n, double x[], int q[])
{
    (void)i, (void)r, (void)x, (void)q;
    return n ? ERROR : OK;
}
EXPORT Status fmi3GetIntervalFraction(Handle i, const Reference r[], size_t n, uint64_t c[], uint64_t s[], int q[])
{
    (void)i, (void)r, (void)c, (void)s, (void)q;
    return n ? ERROR : OK;
}
EXPORT Status fmi3GetShiftDecimal(Handle i, const Reference r[], size_t n, double x[])
{
    (void)i, (void)r, (void)x;
    return n ? ERROR : OK;
}
EXPORT Status fmi3GetShiftFraction(Handle i, const Reference r[], size_t n, uint64_t c[], uint64_t s[])
{
    (void)i, (void)r, (void)c, (void)s;
    return n ? ERROR : OK;
}
EXPORT Status fmi3SetIntervalDecimal(Handle i, const Reference r[], size_t n, const double x[])
{
    (void)i, (void)r, (void)x;
    return n ? ERROR : OK;
}
EXPORT Status fmi3SetIntervalFraction(Handle i, const Reference r[], size_t n, const uint64_t c[], const uint64_t s[])
{
    (void)i, (void)r, (void)c, (void)s;
    return n ? ERROR : OK;
}
EXPORT Status fmi3SetShiftDecimal(Handle i, const Reference r[], size_t n, const double x[])
{
    (void)i, (void)r, (void)x;
    return n ? ERROR : OK;
}
EXPORT Status fmi3SetShiftFraction(Handle i, const Reference r[], size_t n, const uint64_t c[], const uint64_t s[])
{
    (void)i, (void)r, (void)c, (void)s;
    return n ? ERROR : OK;
}
EXPORT Status fmi3EvaluateDiscreteStates(Handle handle) { return handle ? OK : ERROR; }
