// Kernels of the drivers' tests in OpenCL C; kernels.def describes them. Arguments: backends/opencl/driver/opencl.h.
#define AT(type, pointer, offset) ((__global type *)((pointer) + (offset)))
#define PART(g)                   (begin + (end - begin) * (long)(g) / (long)get_num_groups(0))
#define INDICES                   long index = PART(get_group_id(0)), until = PART(get_group_id(0) + 1); index < until; index++
#define REST                                                                                                           \
    __global const long *sizes, long begin, long end, __global uchar *scratch, ulong scratch_size, __local uchar *shared
#define KERNEL(T) __kernel __attribute__((reqd_work_group_size(T, 1, 1))) void

KERNEL(1) add_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global uchar *zp, ulong zo, REST) {
    __global const float *x = AT(const float, xp, xo), *y = AT(const float, yp, yo);
    __global float *z = AT(float, zp, zo);
    for (INDICES)
        for (long i = index * 64; i < index * 64 + 64 && i < sizes[0]; i++) z[i] = x[i] + y[i];
}

KERNEL(64) twice_and_one_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    for (INDICES) {
        long i = index * 64 + (long)get_local_id(0);
        if (i < sizes[0]) AT(float, yp, yo)[i] = 2 * AT(const float, xp, xo)[i] + 1;
    }
}

KERNEL(1) tell_sizes_phase0(__global uchar *yp, ulong yo, REST) {
    for (INDICES)
        for (int i = 0; i < 5; i++) AT(long, yp, yo)[i] = sizes[i];
}

KERNEL(1) sum_in_phases_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global uchar *pp, ulong po,
                               REST) {
    for (INDICES) {
        float sum = 0;
        for (long i = index * 64; i < index * 64 + 64 && i < sizes[0]; i++) sum += AT(const float, xp, xo)[i];
        AT(float, pp, po)[index] = sum;
    }
}

KERNEL(1) sum_in_phases_phase1(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, __global uchar *pp, ulong po,
                               REST) {
    for (INDICES) {
        float sum = 0;
        for (long i = 0; i < (sizes[0] + 63) / 64; i++) sum += AT(const float, pp, po)[i];
        AT(float, yp, yo)[0] = sum;
    }
}

KERNEL(1) copy_bytes_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    for (INDICES)
        for (long i = index * 64; i < index * 64 + 64 && i < sizes[0]; i++)
            AT(uchar, yp, yo)[i] = AT(const uchar, xp, xo)[i];
}

KERNEL(1) transpose_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    for (INDICES)
        for (long i = 0; i < sizes[0]; i++)
            AT(float, yp, yo)[index * sizes[0] + i] = AT(const float, xp, xo)[i * sizes[1] + index];
}

KERNEL(1) gather_phase0(__global uchar *ip, ulong io, __global uchar *tp, ulong to, __global uchar *yp, ulong yo,
                        REST) {
    for (INDICES) {
        long row = clamp(AT(const long, ip, io)[index], 0L, sizes[1] - 1);
        for (long i = 0; i < sizes[2]; i++)
            AT(float, yp, yo)[index * sizes[2] + i] = AT(const float, tp, to)[row * sizes[2] + i];
    }
}

KERNEL(1) halves_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    for (INDICES)
        for (long i = index * sizes[0]; i < (index + 1) * sizes[0]; i++)
            AT(float, yp, yo)[i] = AT(const float, xp, xo)[i] + 1;
}

KERNEL(1) many_pointers_phase0(__global uchar *ap, ulong ao, __global uchar *bp, ulong bo, __global uchar *cp, ulong co,
                               __global uchar *dp, ulong d0, __global uchar *ep, ulong eo, __global uchar *fp, ulong fo,
                               __global uchar *yp, ulong yo, __global uchar *zp, ulong zo, REST) {
    if (begin == end) return;
    for (long i = 0; i < sizes[0]; i++) {
        AT(float, yp, yo)[i] =
            AT(const float, ap, ao)[i] + 2 * AT(const float, bp, bo)[i] + 4 * AT(const float, cp, co)[i];
        AT(float, zp, zo)[i] =
            AT(const float, dp, d0)[i] + 2 * AT(const float, ep, eo)[i] + 4 * AT(const float, fp, fo)[i];
    }
}

KERNEL(1) count_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    if (begin == end) return;
    float y = AT(const float, xp, xo)[0];
    for (long i = 0; i < sizes[0]; i++) y += 1;
    AT(float, yp, yo)[0] = y;
}

// Of the OpenCL driver's own tests: x[N] backwards within each row of 64, by way of the scratch, which has 256 bytes.
KERNEL(1) turn_alone_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    __global float *row = (__global float *)(scratch + get_group_id(0) * scratch_size);
    for (INDICES) {
        for (long i = 0; i < 64; i++) row[i] = AT(const float, xp, xo)[index * 64 + i];
        for (long i = 0; i < 64; i++) AT(float, yp, yo)[index * 64 + i] = row[63 - i];
    }
}

KERNEL(64) turn_together_phase0(__global uchar *xp, ulong xo, __global uchar *yp, ulong yo, REST) {
    __local float *row = (__local float *)shared;
    long i = (long)get_local_id(0);
    for (INDICES) {
        barrier(CLK_LOCAL_MEM_FENCE);
        row[i] = AT(const float, xp, xo)[index * 64 + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        AT(float, yp, yo)[index * 64 + i] = row[63 - i];
    }
}
