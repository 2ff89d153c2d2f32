/* FMI 2.0, model exchange and co-simulation, around the instance of runtime.h; written by dalembert.
   Types and signatures: FMI 2.0.4, sections 2.1, 3.2, 4.2; <https://fmi-standard.org>. */

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
typedef int Boolean;
typedef const char *String;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } Status;
typedef enum { MODEL_EXCHANGE, CO_SIMULATION } Kind;

typedef struct {
    void (*log)(Environment, String, Status, String, String, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(Environment, Status);
    Environment environment;
} Callbacks;

typedef struct {
    Boolean again, terminate, nominals, values, next_defined;
    double next;
} EventInfo;

typedef struct {
    da_instance model;
    const Callbacks *callbacks;
    char name[128];
} Unit;

static Status told(Unit *u, int code)
{
    if (code != DA_OK && u->callbacks && u->callbacks->log) {
        u->callbacks->log(u->callbacks->environment, u->name, (Status)code,
                          code == DA_DISCARD ? "logStatusDiscard" : "logStatusError", "%s", u->model.message);
    }
    return (Status)code;
}

#define FMI(name) fmi2##name
#define FMI_GetFMUstate fmi2GetFMUstate
#define FMI_SetFMUstate fmi2SetFMUstate
#define FMI_FreeFMUstate fmi2FreeFMUstate
#define FMI_SerializedFMUstateSize fmi2SerializedFMUstateSize
#define FMI_SerializeFMUstate fmi2SerializeFMUstate
#define FMI_DeSerializeFMUstate fmi2DeSerializeFMUstate
#define FMI_GetDerivatives fmi2GetDerivatives
typedef char Byte;

#include "common.h"

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }

EXPORT Status fmi2SetDebugLogging(Handle handle, Boolean on, size_t n, const String categories[])
{
    (void)handle, (void)on, (void)n, (void)categories;
    return OK;
}

EXPORT Handle fmi2Instantiate(String name, Kind kind, String guid, String resources, const Callbacks *callbacks,
                                 Boolean visible, Boolean logging)
{
    Unit *u;
    (void)kind, (void)resources, (void)visible, (void)logging;
    if (!guid || strcmp(guid, DA_TOKEN) != 0) {
        if (callbacks && callbacks->log) {
            callbacks->log(callbacks->environment, name, ERROR, "logStatusError", "the GUID is not that of this unit");
        }
        return 0;
    }
    u = (Unit *)calloc(1, sizeof *u);
    if (u) {
        da_reset(&u->model);
        u->callbacks = callbacks;
        strncpy(u->name, name ? name : "", sizeof u->name - 1);
    }
    return u;
}

EXPORT Status fmi2SetupExperiment(Handle handle, Boolean tolerance_defined, double tolerance, double start,
                                  Boolean stop_defined, double stop)
{
    UNIT;
    (void)tolerance_defined, (void)tolerance, (void)stop_defined, (void)stop;
    u->model.value[0] = start;
    return OK;
}

EXPORT Status fmi2EnterInitializationMode(Handle handle)
{
    UNIT;
    u->model.initialising = 1;
    u->model.fresh = 0;
    return OK;
}

EXPORT Status fmi2GetReal(Handle handle, const Reference r[], size_t n, double x[])
{
    UNIT;
    return told(u, da_get(&u->model, r, n, x));
}

EXPORT Status fmi2SetReal(Handle handle, const Reference r[], size_t n, const double x[])
{
    UNIT;
    return told(u, da_set(&u->model, r, n, x));
}

/* Types that no variable of a mechanism has. */
#define NONE(word, kind)                                                                              \
    EXPORT Status fmi2Get##word(Handle handle, const Reference r[], size_t n, kind x[])         \
    {                                                                                                 \
        (void)handle, (void)r, (void)x;                                                            \
        return n ? ERROR : OK;                                                                        \
    }                                                                                                 \
    EXPORT Status fmi2Set##word(Handle handle, const Reference r[], size_t n, const kind x[])   \
    {                                                                                                 \
        (void)handle, (void)r, (void)x;                                                            \
        return n ? ERROR : OK;                                                                        \
    }
NONE(Integer, int)
NONE(Boolean, Boolean)
NONE(String, String)

EXPORT Status fmi2GetDirectionalDerivative(Handle handle, const Reference unknowns[], size_t n,
                                           const Reference knowns[], size_t k, const double seed[], double x[])
{
    UNIT;
    return told(u, da_directional(&u->model, unknowns, n, knowns, k, seed, x));
}

EXPORT Status fmi2NewDiscreteStates(Handle handle, EventInfo *info)
{
    UNIT;
    memset(info, 0, sizeof *info);
    info->values = da_off(&u->model) != 0;
    return info->values ? told(u, da_hold(&u->model)) : OK;
}

EXPORT Status fmi2CompletedIntegratorStep(Handle handle, Boolean no_set, Boolean *event_mode, Boolean *terminate)
{
    UNIT;
    (void)no_set;
    *event_mode = da_off(&u->model) != 0;
    *terminate = 0;
    return OK;
}

EXPORT Status fmi2SetRealInputDerivatives(Handle c, const Reference r[], size_t n, const int order[],
                                          const double x[])
{
    (void)c, (void)r, (void)order, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi2GetRealOutputDerivatives(Handle c, const Reference r[], size_t n, const int order[], double x[])
{
    (void)c, (void)r, (void)order, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi2DoStep(Handle handle, double t, double step, Boolean no_set)
{
    UNIT;
    (void)no_set;
    u->model.value[0] = t;
    return told(u, da_advance(&u->model, t + step));
}

EXPORT Status fmi2CancelStep(Handle handle) { return handle ? ERROR : ERROR; }

EXPORT Status fmi2GetStatus(Handle handle, int kind, Status *value)
{
    (void)handle, (void)kind, (void)value;
    return DISCARD;
}

EXPORT Status fmi2GetRealStatus(Handle handle, int kind, double *value)
{
    UNIT;
    if (kind != 2) { /* fmi2LastSuccessfulTime */
        return DISCARD;
    }
    *value = u->model.value[0];
    return OK;
}

EXPORT Status fmi2GetIntegerStatus(Handle handle, int kind, int *value)
{
    (void)handle, (void)kind, (void)value;
    return DISCARD;
}

EXPORT Status fmi2GetBooleanStatus(Handle handle, int kind, Boolean *value)
{
    (void)handle, (void)kind;
    *value = 0;
    return DISCARD;
}

EXPORT Status fmi2GetStringStatus(Handle handle, int kind, String *value)
{
    (void)handle, (void)kind, (void)value;
    return DISCARD;
}
