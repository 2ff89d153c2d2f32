// CUDA's words for a host compiler: the threads of a block are threads, blocks run one after the other.
#include <pthread.h>

#include <cmath>
#include <thread>
#include <vector>

#define DA_HOST
#define __global__
#define __device__
#define __shared__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline
#define __launch_bounds__(threads, blocks)

using namespace std;

struct shim_index {
    unsigned x;
};
static thread_local shim_index threadIdx, blockIdx;
static pthread_barrier_t shim_barrier;

static inline void __syncthreads()
{
    pthread_barrier_wait(&shim_barrier);
}

template <class T>
static T erfinv(T x)
{
    const double a = fabs((double)x);
    double y = sqrt(-log((1 - a) * (1 + a))) * (a < 0.5 ? 0.9 : 1.0);
    for (int k = 0; k < 60; ++k)
        y -= (a < 0.5 ? erf(y) - a : (1 - a) - erfc(y)) / (1.1283791670955126 * exp(-y * y));
    return (T)(a == 1 ? copysign((double)INFINITY, (double)x) : copysign(y, (double)x));
}

template <class F>
static void shim_launch(unsigned blocks, unsigned threads, F body)
{
    pthread_barrier_init(&shim_barrier, nullptr, threads);
    vector<thread> team;
    for (unsigned t = 0; t < threads; ++t)
        team.emplace_back([=] {
            threadIdx.x = t;
            for (unsigned b = 0; b < blocks; ++b) {
                blockIdx.x = b;
                body();
                __syncthreads();
            }
        });
    for (auto &worker : team)
        worker.join();
    pthread_barrier_destroy(&shim_barrier);
}
