/* The mark of a shared object: a symbol named after the digest of its sources, defined by no other object.
 *
 * A dynamic linker identifies loaded objects by file name or number, which may be reused. The returned object is the
 * right one if it defines the symbol named in the bytes to be loaded. */
#ifndef UIR_BACKENDS_CPU_TARGET_MARK_H
#define UIR_BACKENDS_CPU_TARGET_MARK_H

#define UIR_CPU_MARK        "uir_sources_"
#define UIR_CPU_MARK_DIGITS 64 /* hexadecimal digits of the digest */
#define UIR_CPU_MARK_SIZE   (sizeof UIR_CPU_MARK + UIR_CPU_MARK_DIGITS)

#endif
