// Kernels of the drivers' tests in OpenCL C; kernels.def describes them. An index is a work-group.
#define AT(type, pointer, offset) ((__global type *)((pointer) + (offset)))
#define INDEX                     (first + (long)get_group_id(0))

__kernel void add_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global uchar *zp, ulong zo,
                         __global const long *sizes, long first) {
    __global const float *x = AT(const float, xp, xo), *y = AT(const float, yp, yo);
    __global float *z = AT(float, zp, zo);
    for (long i = INDEX * 64; i < INDEX * 64 + 64 && i < sizes[0]; i++) z[i] = x[i] + y[i];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
twice_and_one_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global const long *sizes,
                     long first) {
    long i = INDEX * 64 + (long)get_local_id(0);
    if (i < sizes[0]) AT(float, yp, yo)[i] = 2 * AT(const float, xp, xo)[i] + 1;
}

__kernel void tell_sizes_phase0(__global uchar *yp, ulong yo, __global const long *sizes, long first) {
    for (int i = 0; i < 5; i++) AT(long, yp, yo)[i] = sizes[i];
}

__kernel void sum_in_phases_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global uchar *pp,
                                   ulong po, __global const long *sizes, long first) {
    float sum = 0;
    for (long i = INDEX * 64; i < INDEX * 64 + 64 && i < sizes[0]; i++) sum += AT(const float, xp, xo)[i];
    AT(float, pp, po)[INDEX] = sum;
}

__kernel void sum_in_phases_phase1(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global uchar *pp,
                                   ulong po, __global const long *sizes, long first) {
    float sum = 0;
    for (long i = 0; i < (sizes[0] + 63) / 64; i++) sum += AT(const float, pp, po)[i];
    AT(float, yp, yo)[0] = sum;
}

__kernel void copy_bytes_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo,
                                __global const long *sizes, long first) {
    for (long i = INDEX * 64; i < INDEX * 64 + 64 && i < sizes[0]; i++)
        AT(uchar, yp, yo)[i] = AT(const uchar, xp, xo)[i];
}

__kernel void transpose_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global const long *sizes,
                               long first) {
    for (long i = 0; i < sizes[0]; i++)
        AT(float, yp, yo)[INDEX * sizes[0] + i] = AT(const float, xp, xo)[i * sizes[1] + INDEX];
}

__kernel void gather_phase0(__global uchar *ip, ulong io, __global uchar *tp, ulong to, __global uchar *yp, ulong yo,
                            __global const long *sizes, long first) {
    long row = clamp(AT(const long, ip, io)[INDEX], 0L, sizes[1] - 1);
    for (long i = 0; i < sizes[2]; i++)
        AT(float, yp, yo)[INDEX * sizes[2] + i] = AT(const float, tp, to)[row * sizes[2] + i];
}

__kernel void halves_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global const long *sizes,
                            long first) {
    for (long i = INDEX * sizes[0]; i < (INDEX + 1) * sizes[0]; i++)
        AT(float, yp, yo)[i] = AT(const float, xp, xo)[i] + 1;
}

__kernel void many_pointers_phase0(__global uchar *ap, ulong ao, __global uchar *bp, ulong bo, __global uchar *cp,
                                   ulong co, __global uchar *dp, ulong d0, __global uchar *ep, ulong eo,
                                   __global uchar *fp, ulong fo, __global uchar *yp, ulong yo, __global uchar *zp,
                                   ulong zo, __global const long *sizes, long first) {
    for (long i = 0; i < sizes[0]; i++) {
        AT(float, yp, yo)[i] =
            AT(const float, ap, ao)[i] + 2 * AT(const float, bp, bo)[i] + 4 * AT(const float, cp, co)[i];
        AT(float, zp, zo)[i] =
            AT(const float, dp, d0)[i] + 2 * AT(const float, ep, eo)[i] + 4 * AT(const float, fp, fo)[i];
    }
}

__kernel void count_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global const long *sizes,
                           long first) {
    float y = AT(const float, xp, xo)[0];
    for (long i = 0; i < sizes[0]; i++) y += 1;
    AT(float, yp, yo)[0] = y;
}
