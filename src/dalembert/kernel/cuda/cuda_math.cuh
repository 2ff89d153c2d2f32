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

// From device to shared memory without a register in between, so that all copies are under way at once.
static __device__ __forceinline__ void da_copy(real *to, const real *from)
{
#if !defined(DA_HOST) && __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(sizeof(real)) : "memory");
#else
    *to = *from;
#endif
}

static __device__ __forceinline__ void da_copied()
{
#if !defined(DA_HOST) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

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
    const real first = fma(n, -1.57079632679489655800e+00, x);
    const real second = n * 6.12323399573676603587e-17;
    const real r = first - second;
    const real given = first - r;  // what was subtracted; what the two differ by was lost (Knuth's two-sum)
    const real lost = (first - (r + given)) - (second - given);
    const real low = lost - fma(n, -1.49738490485916983294e-33, fma(n, 6.12323399573676603587e-17, -second));
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
    const real odd = quadrant & 1 ? cosine : sine;
    const real even = quadrant & 1 ? sine : cosine;
    *s = quadrant & 2 ? -odd : odd;
    *c = (quadrant + 1) & 2 ? -even : even;
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

// 1 / d without a branch, to 1 ulp: a table's start, then Newton. Infinite where d is subnormal, 0 where 1 / d would be.
static __device__ __forceinline__ real da_reciprocal(real d)
{
#ifdef DA_HOST
    return 1 / d;
#elif defined(DA_SINGLE)
    real r, e;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    e = fma(-d, r, 1.0f);
    return fabs(e) < 1.0f ? fma(r, e, r) : r;  // e is NaN where d is 0 or infinite: r is right already
#else
    real r, e, better;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(d));
    e = fma(-d, r, 1.0);
    better = fma(r, fma(e, e, e), r);
    better = fma(better, fma(-d, better, 1.0), better);
    return fabs(e) < 1.0 ? better : r;
#endif
}
