/* The mark of a shared object: a symbol named after the digest of its sources, which no other object defines.
 *
 * A dynamic linker knows what it has loaded by a file's name or number, and both are used again. Its answer is the
 * object that was meant when it defines the symbol that the object's own bytes name. */
#ifndef UIR_BACKENDS_CPU_TARGET_MARK_H
#define UIR_BACKENDS_CPU_TARGET_MARK_H

#define UIR_CPU_MARK        "uir_sources_"
#define UIR_CPU_MARK_DIGITS 64 /* of the digest, hexadecimal */
#define UIR_CPU_MARK_SIZE   (sizeof UIR_CPU_MARK + UIR_CPU_MARK_DIGITS)

#endif
