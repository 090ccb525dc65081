/* The campaigns that damage.c adds to campaign.c. Each one: in, how much and the texts of files; out, sums. */
#ifndef UIR_TESTS_IGRAPH_CAMPAIGN_H
#define UIR_TESTS_IGRAPH_CAMPAIGN_H

#include "jobs.h"

typedef struct text_file {
    char path[200];
    char *text;
    size_t length;
} text_file;

typedef struct text_files {
    text_file *files;
    uint32_t count;
} text_files;

void campaign_edits(uint64_t seed, uint64_t count, uint32_t sizes, uint64_t compiled, const text_files *files,
                    job_totals *t);
void campaign_text(uint64_t seed, uint64_t count, const text_files *files, job_totals *t);
void campaign_bytecode(uint64_t seed, uint64_t count, const text_files *files, job_totals *t);

#endif
