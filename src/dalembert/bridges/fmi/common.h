/* Functions of FMI 2.0 and 3.0 that differ in their names alone, included by fmi2.c and fmi3.c; written by dalembert.

   The including file gives the types Handle (of an instance), State, Status and Byte, the struct Unit with its field
   `model`, and `told`, which reports the runtime's messages; FMI(Name) is the standard's name of a function. */

#define UNIT Unit *u = (Unit *)handle

EXPORT void FMI(FreeInstance)(Handle handle) { free(handle); }
EXPORT Status FMI(EnterEventMode)(Handle handle) { return handle ? OK : ERROR; }
EXPORT Status FMI(EnterContinuousTimeMode)(Handle handle) { return handle ? OK : ERROR; }
EXPORT Status FMI(Terminate)(Handle handle) { return handle ? OK : ERROR; }

EXPORT Status FMI(Reset)(Handle handle)
{
    UNIT;
    da_reset(&u->model);
    return OK;
}

EXPORT Status FMI(ExitInitializationMode)(Handle handle)
{
    UNIT;
    u->model.initialising = 0;
    return told(u, da_hold(&u->model));
}

EXPORT Status FMI_GetFMUstate(Handle handle, State *state)
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

EXPORT Status FMI_SetFMUstate(Handle handle, State state)
{
    UNIT;
    memcpy(&u->model, state, sizeof u->model);
    return OK;
}

EXPORT Status FMI_FreeFMUstate(Handle handle, State *state)
{
    (void)handle;
    free(*state);
    *state = 0;
    return OK;
}

EXPORT Status FMI_SerializedFMUstateSize(Handle handle, State state, size_t *size)
{
    (void)handle, (void)state;
    *size = sizeof(da_instance);
    return OK;
}

EXPORT Status FMI_SerializeFMUstate(Handle handle, State state, Byte bytes[], size_t size)
{
    (void)handle;
    if (size < sizeof(da_instance)) {
        return ERROR;
    }
    memcpy(bytes, state, sizeof(da_instance));
    return OK;
}

EXPORT Status FMI_DeSerializeFMUstate(Handle handle, const Byte bytes[], size_t size, State *state)
{
    (void)handle;
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

EXPORT Status FMI(SetTime)(Handle handle, double t)
{
    UNIT;
    u->model.value[0] = t;
    u->model.fresh = 0;
    return OK;
}

EXPORT Status FMI(SetContinuousStates)(Handle handle, const double x[], size_t n)
{
    UNIT;
    memcpy(u->model.value + DA_X, x, n * sizeof *x);
    u->model.fresh = 0;
    return OK;
}

EXPORT Status FMI(GetContinuousStates)(Handle handle, double x[], size_t n)
{
    UNIT;
    memcpy(x, u->model.value + DA_X, n * sizeof *x);
    return OK;
}

EXPORT Status FMI_GetDerivatives(Handle handle, double x[], size_t n)
{
    UNIT;
    const int bad = da_update(&u->model);
    memcpy(x, u->model.value + DA_DX, n * sizeof *x);
    return told(u, bad);
}

EXPORT Status FMI(GetEventIndicators)(Handle handle, double x[], size_t n)
{
    (void)handle, (void)x;
    return n ? ERROR : OK;
}

EXPORT Status FMI(GetNominalsOfContinuousStates)(Handle handle, double x[], size_t n)
{
    size_t i;
    (void)handle;
    for (i = 0; i < n; ++i) {
        x[i] = 1.0;
    }
    return OK;
}
