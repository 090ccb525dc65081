/* Contexts, messages, statuses. */
#include "api/internal.h"

#include <string.h>

/* A caller that never clears must not fill memory. */
enum { MAX_MESSAGES = 10000 };

uir_status uir_context_create(const uir_allocator *allocator, uir_context **out_context) {
    uir_allocator chosen = allocator ? *allocator : uir_allocator_system();
    uir_context *context;
    if (!out_context) return UIR_STATUS_INVALID_ARGUMENT;
    *out_context = NULL;
    UIR_TRY_ALLOCATE(context, uir_allocate_zeroed(&chosen, sizeof *context));
    context->allocator = chosen;
    if (pthread_mutex_init(&context->mutex, NULL) != 0) {
        uir_release(&chosen, context, sizeof *context);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_arena_init(&context->arena, &context->allocator);
    *out_context = context;
    return UIR_STATUS_OK;
}

void uir_context_destroy(uir_context *context) {
    if (!context) return;
    uir_arena_deinit(&context->arena);
    pthread_mutex_destroy(&context->mutex);
    uir_allocator allocator = context->allocator;
    uir_release(&allocator, context, sizeof *context);
}

size_t uir_context_message_count(const uir_context *context) {
    uir_context *locked = (uir_context *)context;
    pthread_mutex_lock(&locked->mutex);
    size_t count = context->messages.count;
    pthread_mutex_unlock(&locked->mutex);
    return count;
}

static bool find_message(const uir_context *context, size_t index, uir_message *out_message) {
    uir_context *locked = (uir_context *)context;
    *out_message = (uir_message){.text = ""};
    pthread_mutex_lock(&locked->mutex);
    bool found = index < context->messages.count;
    if (found) *out_message = context->messages.data[index];
    pthread_mutex_unlock(&locked->mutex);
    return found;
}

uir_status uir_context_get_message(const uir_context *context, size_t index, uir_message *out_message) {
    uir_message message;
    bool found = find_message(context, index, &message);
    UIR_TRY(UIR_STRUCT_GIVE(NULL, uir_message, &message, out_message));
    return found ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT;
}

const char *uir_context_get_message_text(const uir_context *context, size_t index) {
    uir_message message;
    (void)find_message(context, index, &message);
    return message.text;
}

void uir_context_clear_messages(uir_context *context) {
    pthread_mutex_lock(&context->mutex);
    uir_arena_reset(&context->arena);
    memset(&context->messages, 0, sizeof context->messages);
    pthread_mutex_unlock(&context->mutex);
}

/* ---- calls ---- */

void uir_call_begin(uir_call *call, uir_context *context) {
    call->context = context;
    uir_diagnostics_init(&call->diagnostics, &context->allocator);
}

static const char *copy_text(uir_context *context, const char *text) {
    return text ? uir_arena_copy_string(&context->arena, text, strlen(text)) : NULL;
}

/* Best effort: without memory for a message, the status still tells. */
static void keep_message(uir_context *context, const uir_diagnostic *diagnostic) {
    if (context->messages.count >= MAX_MESSAGES) return;
    size_t length = uir_diagnostic_format(diagnostic, NULL, 0);
    char *text = uir_arena_allocate(&context->arena, length + 1);
    if (!text) return;
    uir_diagnostic_format(diagnostic, text, length + 1);
    uir_message message = {.severity = diagnostic->severity,
                           .status = diagnostic->status,
                           .text = text,
                           .node = copy_text(context, diagnostic->location.node),
                           .op = copy_text(context, diagnostic->location.op)};
    (void)!uir_vector_push(&context->arena, &context->messages, message);
}

uir_status uir_call_flush(uir_call *call, uir_status status, const char *what) {
    if (status != UIR_STATUS_OK && call->diagnostics.error_count == 0) {
        uir_error(&call->diagnostics, status, NULL, "%s: %s", what, uir_status_text(status));
    }
    pthread_mutex_lock(&call->context->mutex);
    for (const uir_diagnostic *d = call->diagnostics.first; d; d = d->next) keep_message(call->context, d);
    pthread_mutex_unlock(&call->context->mutex);
    if (call->diagnostics.count) uir_diagnostics_clear(&call->diagnostics);
    return status;
}

uir_status uir_call_end(uir_call *call, uir_status status, const char *what) {
    uir_call_flush(call, status, what);
    uir_diagnostics_deinit(&call->diagnostics);
    return status;
}
