/* The instance of a mechanism: derivatives, loops held, one step of co-simulation, directional derivatives. */

#include "runtime.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NEWTON_STEPS 20
/* A residual that is this part of the one that starts an event counts as none. */
#define CLOSED 1e-4

static double largest(const double *x, int n)
{
    double most = 0.0;
    int i;
    for (i = 0; i < n; ++i) {
        const double a = fabs(x[i]);
        if (!(a <= most)) {
            most = a; /* NaN is largest */
        }
    }
    return most;
}

static int solved(double status) { return status == 0.0 || status == 1.0; /* unique, or redundant rows that agree */ }

static int refuse(da_instance *m, const char *what, double status)
{
    static const char *const reasons[] = {"unique", "redundant", "held", "least squares", "ill-conditioned",
                                          "constraints contradict each other", "a motion without mass is free",
                                          "the mass matrix is indefinite", "declined", "not symmetric", "not finite"};
    const int number = status >= 0.0 && status < 11.0 ? (int)status : 10;
    snprintf(m->message, sizeof m->message, "%s at t = %.9g has no answer: %s (status %d)", what, m->value[0],
             reasons[number], number);
    return DA_DISCARD;
}

void da_reset(da_instance *m)
{
    static const double start[DA_VALUES] = DA_START;
    memcpy(m->value, start, sizeof start);
    m->fresh = 0;
    m->initialising = 0;
    m->message[0] = 0;
}

int da_update(da_instance *m)
{
    double *x = m->value + DA_X, *dx = m->value + DA_DX;
    if (m->fresh) {
        return DA_OK;
    }
    da_equations(x, x + DA_NQ, m->value + DA_U, m->value, m->value + DA_P, dx, dx + DA_NQ, m->value + DA_LAM,
                 m->value + DA_STATUS);
    if (!solved(m->value[DA_STATUS])) {
        return refuse(m, "forward dynamics", m->value[DA_STATUS]);
    }
    m->fresh = 1;
    return DA_OK;
}

/* How far the state is off its manifold: loops, their rates, lengths of quaternions. */
static double off(da_instance *m, double *step, double *velocity, double *status)
{
    double *q = m->value + DA_X, *v = q + DA_NQ;
    double moved[DA_AT_LEAST_ONE(DA_NQ)], still[DA_AT_LEAST_ONE(DA_NV)] = {0.0}, worst;
    int i;
    da_integrate(q, still, moved);
    for (i = 0; i < DA_NQ; ++i) {
        moved[i] -= q[i];
    }
    worst = largest(moved, DA_NQ);
    *status = 0.0;
#if DA_M > 0
    {
        double residual[DA_AT_LEAST_ONE(DA_H)], impulses[DA_M], rate;
        da_project(q, v, m->value, m->value + DA_P, step, velocity, residual, impulses, status);
        rate = largest(residual, DA_H);
        worst = rate > worst || rate != rate ? rate : worst;
        for (i = 0; i < DA_NV; ++i) {
            rate = fabs(velocity[i] - v[i]);
            worst = rate > worst || rate != rate ? rate : worst;
        }
    }
#else
    (void)v;
    (void)velocity;
    (void)step;
#endif
    return worst;
}

int da_off(da_instance *m)
{
    double step[DA_AT_LEAST_ONE(DA_NV)] = {0.0}, velocity[DA_AT_LEAST_ONE(DA_NV)], status;
    return !(off(m, step, velocity, &status) <= DA_TOLERANCE);
}

int da_hold(da_instance *m)
{
    double *q = m->value + DA_X;
    double step[DA_AT_LEAST_ONE(DA_NV)] = {0.0}, velocity[DA_AT_LEAST_ONE(DA_NV)], moved[DA_AT_LEAST_ONE(DA_NQ)];
    double status = 0.0;
    int k;
    for (k = 0; k < NEWTON_STEPS; ++k) {
        const double worst = off(m, step, velocity, &status);
        if (!solved(status) || worst != worst) {
            return refuse(m, "projection onto the constraints", status);
        }
        m->fresh = 0;
        da_integrate(q, step, moved);
        memcpy(q, moved, DA_NQ * sizeof *q);
#if DA_M > 0
        memcpy(q + DA_NQ, velocity, DA_NV * sizeof *q);
#endif
        if (worst <= CLOSED * DA_TOLERANCE) {
            return DA_OK;
        }
    }
    snprintf(m->message, sizeof m->message, "the constraints at t = %.9g cannot be closed from here", m->value[0]);
    return DA_DISCARD;
}

/* One step of the classical method of Runge and Kutta, then back onto the manifold. */
static int one_step(da_instance *m, double h)
{
    static const double place[4] = {0.0, 0.5, 0.5, 1.0}, weight[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    double *t = m->value, *x = m->value + DA_X, *dx = m->value + DA_DX;
    double x0[DA_AT_LEAST_ONE(DA_NX)], sum[DA_AT_LEAST_ONE(DA_NX)];
    const double t0 = *t;
    int s, i;
    memcpy(x0, x, DA_NX * sizeof *x);
    memcpy(sum, x, DA_NX * sizeof *x);
    for (s = 0; s < 4; ++s) {
        if (s) {
            for (i = 0; i < DA_NX; ++i) {
                x[i] = x0[i] + h * place[s] * dx[i];
            }
            *t = t0 + place[s] * h;
            m->fresh = 0;
        }
        if (da_update(m)) { /* back to where the step began */
            memcpy(x, x0, DA_NX * sizeof *x);
            *t = t0;
            m->fresh = 0;
            return DA_DISCARD;
        }
        for (i = 0; i < DA_NX; ++i) {
            sum[i] += h * weight[s] * dx[i];
        }
    }
    memcpy(x, sum, DA_NX * sizeof *x);
    m->fresh = 0;
    return da_hold(m);
}

int da_advance(da_instance *m, double end)
{
    const double start = m->value[0], length = end - start;
    const double parts = ceil(length / DA_STEP * (1.0 - 1e-9));
    const int n = parts < 1.0 ? 1 : (int)parts;
    int k;
    for (k = 0; k < n; ++k) {
        const int bad = one_step(m, length / n);
        if (bad) {
            return bad;
        }
        m->value[0] = start + length * (k + 1) / n;
    }
    m->fresh = 0;
    return DA_OK;
}

int da_get(da_instance *m, const unsigned int *reference, size_t n, double *x)
{
    size_t i;
    for (i = 0; i < n; ++i) {
        const unsigned int r = reference[i];
        if (r >= DA_VALUES) {
            snprintf(m->message, sizeof m->message, "there is no variable with value reference %u", r);
            return DA_ERROR;
        }
        if ((r >= DA_DX && r < DA_U) || (r >= DA_LAM && r < DA_P)) {
            const int bad = da_update(m);
            if (bad) {
                return bad;
            }
        }
        x[i] = m->value[r];
    }
    return DA_OK;
}

int da_set(da_instance *m, const unsigned int *reference, size_t n, const double *x)
{
    size_t i;
    for (i = 0; i < n; ++i) {
        const unsigned int r = reference[i];
        const int settable = (r >= DA_U && r < DA_LAM) || (r >= DA_P && r < DA_VALUES) || (r >= DA_X && r < DA_DX);
        if (!settable) {
            snprintf(m->message, sizeof m->message, "the variable with value reference %u cannot be set", r);
            return DA_ERROR;
        }
        m->value[r] = x[i];
    }
    m->fresh = 0;
    return DA_OK;
}

int da_directional(da_instance *m, const unsigned int *unknown, size_t n, const unsigned int *known, size_t k,
                   const double *seed, double *x)
{
    double s[DA_VALUES] = {0.0}, d[DA_VALUES] = {0.0}, *v = m->value;
    size_t i;
    for (i = 0; i < k; ++i) {
        if (known[i] >= DA_VALUES || (known[i] >= DA_DX && known[i] < DA_U) || (known[i] >= DA_LAM && known[i] < DA_P)) {
            snprintf(m->message, sizeof m->message, "value reference %u is no known of a derivative", known[i]);
            return DA_ERROR;
        }
        s[known[i]] += seed[i];
    }
    da_forward(v + DA_X, v + DA_X + DA_NQ, v + DA_U, v, v + DA_P, s + DA_X, s + DA_X + DA_NQ, s + DA_U, s, s + DA_P,
               d + DA_DX, d + DA_DX + DA_NQ, d + DA_LAM);
    memcpy(d + DA_X, s + DA_X, DA_NX * sizeof *d);
    for (i = 0; i < n; ++i) {
        if (unknown[i] >= DA_VALUES) {
            return DA_ERROR;
        }
        x[i] = d[unknown[i]];
        if (x[i] != x[i]) {
            snprintf(m->message, sizeof m->message, "a directional derivative at t = %.9g is not finite", v[0]);
            return DA_DISCARD;
        }
    }
    return DA_OK;
}

int da_adjoint(da_instance *m, const unsigned int *unknown, size_t n, const unsigned int *known, size_t k,
               const double *seed, double *x)
{
    double s[DA_VALUES] = {0.0}, d[DA_VALUES] = {0.0}, *v = m->value;
    size_t i;
    for (i = 0; i < n; ++i) {
        if (unknown[i] >= DA_VALUES) {
            return DA_ERROR;
        }
        s[unknown[i]] += seed[i];
    }
    da_reverse(v + DA_X, v + DA_X + DA_NQ, v + DA_U, v, v + DA_P, s + DA_DX, s + DA_DX + DA_NQ, s + DA_LAM, d + DA_X,
               d + DA_X + DA_NQ, d + DA_U, d, d + DA_P);
    for (i = 0; i < DA_NX; ++i) {
        d[DA_X + i] += s[DA_X + i]; /* an output that is a state */
    }
    for (i = 0; i < k; ++i) {
        if (known[i] >= DA_VALUES) {
            return DA_ERROR;
        }
        x[i] = d[known[i]];
    }
    return DA_OK;
}
