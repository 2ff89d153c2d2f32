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

typedef void *Component;
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

#define UNIT Unit *u = (Unit *)component

static Status told(Unit *u, int code)
{
    if (code != DA_OK && u->callbacks && u->callbacks->log) {
        u->callbacks->log(u->callbacks->environment, u->name, (Status)code,
                          code == DA_DISCARD ? "logStatusDiscard" : "logStatusError", "%s", u->model.message);
    }
    return (Status)code;
}

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }

EXPORT Status fmi2SetDebugLogging(Component component, Boolean on, size_t n, const String categories[])
{
    (void)component, (void)on, (void)n, (void)categories;
    return OK;
}

EXPORT Component fmi2Instantiate(String name, Kind kind, String guid, String resources, const Callbacks *callbacks,
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

EXPORT void fmi2FreeInstance(Component component) { free(component); }

EXPORT Status fmi2SetupExperiment(Component component, Boolean tolerance_defined, double tolerance, double start,
                                  Boolean stop_defined, double stop)
{
    UNIT;
    (void)tolerance_defined, (void)tolerance, (void)stop_defined, (void)stop;
    u->model.value[0] = start;
    return OK;
}

EXPORT Status fmi2EnterInitializationMode(Component component)
{
    UNIT;
    u->model.initialising = 1;
    u->model.fresh = 0;
    return OK;
}

EXPORT Status fmi2ExitInitializationMode(Component component)
{
    UNIT;
    u->model.initialising = 0;
    return told(u, da_hold(&u->model));
}

EXPORT Status fmi2Terminate(Component component) { return component ? OK : ERROR; }
EXPORT Status fmi2EnterEventMode(Component component) { return component ? OK : ERROR; }
EXPORT Status fmi2EnterContinuousTimeMode(Component component) { return component ? OK : ERROR; }

EXPORT Status fmi2Reset(Component component)
{
    UNIT;
    da_reset(&u->model);
    return OK;
}

EXPORT Status fmi2GetReal(Component component, const Reference r[], size_t n, double x[])
{
    UNIT;
    return told(u, da_get(&u->model, r, n, x));
}

EXPORT Status fmi2SetReal(Component component, const Reference r[], size_t n, const double x[])
{
    UNIT;
    return told(u, da_set(&u->model, r, n, x));
}

/* Types that no variable of a mechanism has. */
#define NONE(word, kind)                                                                              \
    EXPORT Status fmi2Get##word(Component component, const Reference r[], size_t n, kind x[])         \
    {                                                                                                 \
        (void)component, (void)r, (void)x;                                                            \
        return n ? ERROR : OK;                                                                        \
    }                                                                                                 \
    EXPORT Status fmi2Set##word(Component component, const Reference r[], size_t n, const kind x[])   \
    {                                                                                                 \
        (void)component, (void)r, (void)x;                                                            \
        return n ? ERROR : OK;                                                                        \
    }
NONE(Integer, int)
NONE(Boolean, Boolean)
NONE(String, String)

EXPORT Status fmi2GetFMUstate(Component component, State *state)
{
    UNIT;
    if (!*state) {
        *state = malloc(sizeof u->model);
    }
    if (!*state) {
        return ERROR;
    }
    memcpy(*state, &u->model, sizeof u->model);
    return OK;
}

EXPORT Status fmi2SetFMUstate(Component component, State state)
{
    UNIT;
    memcpy(&u->model, state, sizeof u->model);
    return OK;
}

EXPORT Status fmi2FreeFMUstate(Component component, State *state)
{
    (void)component;
    free(*state);
    *state = 0;
    return OK;
}

EXPORT Status fmi2SerializedFMUstateSize(Component component, State state, size_t *size)
{
    (void)component, (void)state;
    *size = sizeof(da_instance);
    return OK;
}

EXPORT Status fmi2SerializeFMUstate(Component component, State state, char bytes[], size_t size)
{
    (void)component;
    if (size < sizeof(da_instance)) {
        return ERROR;
    }
    memcpy(bytes, state, sizeof(da_instance));
    return OK;
}

EXPORT Status fmi2DeSerializeFMUstate(Component component, const char bytes[], size_t size, State *state)
{
    (void)component;
    if (size < sizeof(da_instance)) {
        return ERROR;
    }
    if (!*state) {
        *state = malloc(sizeof(da_instance));
    }
    if (!*state) {
        return ERROR;
    }
    memcpy(*state, bytes, sizeof(da_instance));
    return OK;
}

EXPORT Status fmi2GetDirectionalDerivative(Component component, const Reference unknowns[], size_t n,
                                           const Reference knowns[], size_t k, const double seed[], double x[])
{
    UNIT;
    return told(u, da_directional(&u->model, unknowns, n, knowns, k, seed, x));
}

EXPORT Status fmi2NewDiscreteStates(Component component, EventInfo *info)
{
    UNIT;
    memset(info, 0, sizeof *info);
    info->values = da_off(&u->model) != 0;
    return info->values ? told(u, da_hold(&u->model)) : OK;
}

EXPORT Status fmi2CompletedIntegratorStep(Component component, Boolean no_set, Boolean *event_mode, Boolean *terminate)
{
    UNIT;
    (void)no_set;
    *event_mode = da_off(&u->model) != 0;
    *terminate = 0;
    return OK;
}

EXPORT Status fmi2SetTime(Component component, double t)
{
    UNIT;
    u->model.value[0] = t;
    u->model.fresh = 0;
    return OK;
}

EXPORT Status fmi2SetContinuousStates(Component component, const double x[], size_t n)
{
    UNIT;
    memcpy(u->model.value + DA_X, x, n * sizeof *x);
    u->model.fresh = 0;
    return OK;
}

EXPORT Status fmi2GetContinuousStates(Component component, double x[], size_t n)
{
    UNIT;
    memcpy(x, u->model.value + DA_X, n * sizeof *x);
    return OK;
}

EXPORT Status fmi2GetDerivatives(Component component, double x[], size_t n)
{
    UNIT;
    const int bad = da_update(&u->model);
    memcpy(x, u->model.value + DA_DX, n * sizeof *x);
    return told(u, bad);
}

EXPORT Status fmi2GetEventIndicators(Component component, double x[], size_t n)
{
    (void)component, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi2GetNominalsOfContinuousStates(Component component, double x[], size_t n)
{
    size_t i;
    (void)component;
    for (i = 0; i < n; ++i) {
        x[i] = 1.0;
    }
    return OK;
}

EXPORT Status fmi2SetRealInputDerivatives(Component c, const Reference r[], size_t n, const int order[],
                                          const double x[])
{
    (void)c, (void)r, (void)order, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi2GetRealOutputDerivatives(Component c, const Reference r[], size_t n, const int order[], double x[])
{
    (void)c, (void)r, (void)order, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status fmi2DoStep(Component component, double t, double step, Boolean no_set)
{
    UNIT;
    (void)no_set;
    u->model.value[0] = t;
    return told(u, da_advance(&u->model, t + step));
}

EXPORT Status fmi2CancelStep(Component component) { return component ? ERROR : ERROR; }

EXPORT Status fmi2GetStatus(Component component, int kind, Status *value)
{
    (void)component, (void)kind, (void)value;
    return DISCARD;
}

EXPORT Status fmi2GetRealStatus(Component component, int kind, double *value)
{
    UNIT;
    if (kind != 2) { /* fmi2LastSuccessfulTime */
        return DISCARD;
    }
    *value = u->model.value[0];
    return OK;
}

EXPORT Status fmi2GetIntegerStatus(Component component, int kind, int *value)
{
    (void)component, (void)kind, (void)value;
    return DISCARD;
}

EXPORT Status fmi2GetBooleanStatus(Component component, int kind, Boolean *value)
{
    (void)component, (void)kind;
    *value = 0;
    return DISCARD;
}

EXPORT Status fmi2GetStringStatus(Component component, int kind, String *value)
{
    (void)component, (void)kind, (void)value;
    return DISCARD;
}
