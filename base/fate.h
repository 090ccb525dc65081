/* The fates of the nodes of a model's file: words for reports and packages that say why no kernel or step computes a
 * node. STANDS, the empty word: the node still has a primitive that a run computes. */
#ifndef UIR_BASE_FATE_H
#define UIR_BASE_FATE_H

/* UIR_FATE(constant, word, why) */
#define UIR_FATES(UIR_FATE)                                                                                            \
    UIR_FATE(STANDS, "", "")                                                                                           \
    UIR_FATE(FOLDED, "folded", "its results are constants or known sizes")                                             \
    UIR_FATE(MERGED, "merged", "an equal node computes it, or the node that reads it")                                 \
    UIR_FATE(ALIAS, "alias", "its result is an alias of another value")                                                \
    UIR_FATE(INLINED, "inlined", "it calls a local function, whose nodes are listed instead")                          \
    UIR_FATE(DEAD, "dead", "no output of the model needs it")

typedef enum uir_fate {
#define UIR_FATE_ENUM(constant, word, why) UIR_FATE_##constant,
    UIR_FATES(UIR_FATE_ENUM)
#undef UIR_FATE_ENUM
        UIR_FATE_COUNT
} uir_fate;

#endif
