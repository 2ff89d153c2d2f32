/* The instance of a mechanism in a functional mock-up unit, the same for FMI 2.0 and 3.0; written by dalembert.

   State x = [q; v]: configuration, with unit quaternions and (cos, sin), and velocity. The equations are those of
   model.h (sizes, start values) and of the functions that the mechanism was printed to:

     da_equations   q, v, tau, t, p -> dq/dt, a, multipliers, status
     da_forward     the same, along seeds;  da_reverse  against seeds
     da_project     q, v, t, p -> Newton's step onto the loops, admissible velocity, residual, impulses, status
     da_integrate   q, d -> q moved along d, quaternions of length one
*/
#ifndef DA_RUNTIME_H
#define DA_RUNTIME_H

#include "model.h"

#define DA_AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)
#define DA_NX (DA_NQ + DA_NV)

/* Value references: time, states, their derivatives, inputs, multipliers, status, parameters. */
#define DA_X 1
#define DA_DX (DA_X + DA_NX)
#define DA_U (DA_DX + DA_NX)
#define DA_LAM (DA_U + DA_NV)
#define DA_STATUS (DA_LAM + DA_M)
#define DA_P (DA_STATUS + 1)
#define DA_VALUES (DA_P + DA_NP)

enum { DA_OK = 0, DA_DISCARD = 2, DA_ERROR = 3 };

typedef struct {
    double value[DA_VALUES]; /* by value reference */
    int fresh;               /* whether derivatives, multipliers and status belong to the rest */
    int initialising;
    char message[400];
} da_instance;

void da_reset(da_instance *m);
int da_update(da_instance *m);
int da_hold(da_instance *m);
int da_off(da_instance *m);
int da_advance(da_instance *m, double end);
int da_get(da_instance *m, const unsigned int *reference, size_t n, double *x);
int da_set(da_instance *m, const unsigned int *reference, size_t n, const double *x);
int da_directional(da_instance *m, const unsigned int *unknown, size_t n, const unsigned int *known, size_t k,
                   const double *seed, double *x);
int da_adjoint(da_instance *m, const unsigned int *unknown, size_t n, const unsigned int *known, size_t k,
               const double *seed, double *x);

#endif
