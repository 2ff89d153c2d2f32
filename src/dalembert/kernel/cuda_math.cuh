// Sine and cosine as polynomials, and a few operations that CUDA has not: one text for NVRTC, nvcc and a host compiler.
//
// `real` is float or double, DA_SINGLE is defined for float. Reductions: Cody & Waite 1980, with fused operations; beyond
// DA_NEAR the library's own. Polynomials: float, minimax on [-pi/4, pi/4]; double, Sun's fdlibm 1993 (k_sin.c, k_cos.c).
// Symbols: n nearest multiple of pi/2, r = x - n pi/2, z = r^2.

#ifndef INFINITY
#ifdef DA_SINGLE
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define NAN __longlong_as_double(0x7fffffffffffffffll)
#endif
#endif

// Rare, and a real call: kept out of line, so that the code around it stays small.
static __device__ __noinline__ real da_far(real x, int cosine)
{
    return cosine ? cos(x) : sin(x);
}

static __device__ __forceinline__ void da_sincos(real x, real *s, real *c)
{
#ifdef DA_SINGLE
    const real near = 105615.0f;
    const real n = rint(x * 0.636619747f);
    real r = fma(n, -1.57079601e+00f, x);
    r = fma(n, -3.13916473e-07f, r);
    r = fma(n, -5.39030253e-15f, r);
    const int quadrant = (int)n;
    const real z = r * r;
    real p = fma(2.86567956e-6f, z, -1.98559923e-4f);
    p = fma(p, z, 8.33338592e-3f);
    p = fma(p, z, -1.66666672e-1f);
    const real sine = fma(p, r * z, r);
    p = fma(2.44677067e-5f, z, -1.38877297e-3f);
    p = fma(p, z, 4.16666567e-2f);
    p = fma(p, z, -0.5f);
    const real cosine = fma(p, z, 1.0f);
#else
    const real near = 1.0e9;
    const real n = rint(x * 0.63661977236758134308);
    real r = fma(n, -1.57079632679489655800e+00, x);
    const real high = r;
    r = fma(n, -6.12323399573676603587e-17, high);
    const real low = fma(n, -6.12323399573676603587e-17, high - r);  // what r lost in rounding
    const int quadrant = (int)n;
    const real z = r * r;
    real p = fma(1.58969099521155010221e-10, z, -2.50507602534068634195e-08);
    p = fma(p, z, 2.75573137070700676789e-06);
    p = fma(p, z, -1.98412698298579493134e-04);
    p = fma(p, z, 8.33333333332248946124e-03);
    const real v = z * r;
    const real sine = r - fma(v, 1.66666666666666324348e-01, fma(z, 0.5 * low - v * p, -low));
    p = fma(-1.13596475577881948265e-11, z, 2.08757232129817482790e-09);
    p = fma(p, z, -2.75573143513906633035e-07);
    p = fma(p, z, 2.48015872894767294178e-05);
    p = fma(p, z, -1.38888888888741095749e-03);
    p = fma(p, z, 4.16666666666666019037e-02);
    const real half = 0.5 * z;
    const real lead = 1.0 - half;
    const real cosine = lead + (((1.0 - lead) - half) + fma(z, z * p, -(r * low)));
#endif
    const real first = quadrant & 1 ? cosine : sine;
    const real second = quadrant & 1 ? sine : cosine;
    *s = quadrant & 2 ? -first : first;
    *c = (quadrant + 1) & 2 ? -second : second;
    if (!(fabs(x) <= near)) {
        *s = da_far(x, 0);
        *c = da_far(x, 1);
    }
}

static __device__ __forceinline__ real da_sin(real x)
{
    real s, c;
    da_sincos(x, &s, &c);
    return s;
}

static __device__ __forceinline__ real da_cos(real x)
{
    real s, c;
    da_sincos(x, &s, &c);
    return c;
}

static __device__ __forceinline__ real da_tan(real x)
{
    real s, c;
    da_sincos(x, &s, &c);
    return s / c;
}

// a / d with r = 1 / d, rounded correctly: one step from a r (Markstein 1990), or a r itself where d is 0 or infinite.
// Where 1 / d is subnormal or overflows, |d| > 2^126 or < 2^-126 in single, some bits are lost.
static __device__ __forceinline__ real da_divide(real a, real d, real r)
{
    const real q = a * r;
    const real better = fma(fma(-d, q, a), r, q);
    return better == better ? better : q;
}
