/* Contexts and messages. */
#include "api/internal.h"

#include <string.h>

/* A caller that never clears must not fill memory. */
enum { MAX_MESSAGES = 10000 };

/* Inputs are as large as they are: of memory there is no default. */
static void limit_values(uir_context *context, const uir_limits *limits) {
    uir_limits l = *limits;
    if (!l.memory) l.memory = UIR_NO_LIMIT;
    uir_budget_init(&context->values, &context->allocator, &l);
}

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
    limit_values(context, &(uir_limits){0});
    context->value_allocator = uir_budget_allocator(&context->values);
    *out_context = context;
    return UIR_STATUS_OK;
}

void uir_context_destroy(uir_context *context) {
    if (!context) return;
    uir_budget_deinit(&context->values);
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

uir_status uir_context_set_value_limits(uir_context *context, const uir_limits *limits) {
    uir_limits taken;
    uir_call call;
    uir_call_begin(&call, context);
    uir_status status = uir_api_take_limits(&call.diagnostics, limits, &taken);
    if (status == UIR_STATUS_OK && (__atomic_load_n(&context->values.used, __ATOMIC_RELAXED) ||
                                    __atomic_load_n(&context->device_used, __ATOMIC_RELAXED)))
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "limits of values must be set before the context has values");
    if (status == UIR_STATUS_OK) limit_values(context, &taken);
    return uir_call_end(&call, status, "setting limits");
}

/* ---- calls ---- */

uir_status uir_api_take_limits(uir_diagnostics *diagnostics, const uir_limits *given, uir_limits *out_limits) {
    return UIR_STRUCT_TAKE(diagnostics, uir_limits, given, out_limits);
}

void uir_call_begin(uir_call *call, uir_context *context) {
    call->context = context;
    uir_diagnostics_init(&call->diagnostics, &context->allocator);
}

/* Best effort: without memory for a message, the status still tells. */
static bool make_message(uir_arena *arena, const uir_diagnostic *diagnostic, uir_message *out_message) {
    size_t length = uir_diagnostic_format(diagnostic, NULL, 0);
    const char *node = diagnostic->location.node, *op = diagnostic->location.op;
    char *text = uir_arena_allocate(arena, length + 1);
    if (!text) return false;
    uir_diagnostic_format(diagnostic, text, length + 1);
    *out_message = (uir_message){.struct_size = sizeof *out_message,
                                 .severity = diagnostic->severity,
                                 .status = diagnostic->status,
                                 .text = text,
                                 .node = node ? uir_arena_copy_string(arena, node, strlen(node)) : NULL,
                                 .op = op ? uir_arena_copy_string(arena, op, strlen(op)) : NULL};
    return true;
}

static void keep_messages(uir_context *context, const uir_diagnostic *first) {
    uir_message message;
    for (const uir_diagnostic *d = first; d && context->messages.count < MAX_MESSAGES; d = d->next)
        if (make_message(&context->arena, d, &message))
            (void)!uir_vector_push(&context->arena, &context->messages, message);
}

static void tell_messages(const uir_context *context, const uir_diagnostic *first) {
    uir_message message;
    uir_arena arena;
    uir_arena_init(&arena, &context->allocator);
    for (const uir_diagnostic *d = first; d; d = d->next) {
        if (make_message(&arena, d, &message)) context->hear(context->hear_user, &message);
        uir_arena_reset(&arena);
    }
    uir_arena_deinit(&arena);
}

void uir_context_set_message_callback(uir_context *context, void (*hear)(void *user, const uir_message *message),
                                      void *user) {
    context->hear = hear;
    context->hear_user = user;
}

uir_status uir_call_flush(uir_call *call, uir_status status, const char *what) {
    if (status != UIR_STATUS_OK && call->diagnostics.error_count == 0) {
        uir_error(&call->diagnostics, status, NULL, "%s: %s", what, uir_status_text(status));
    }
    if (!call->diagnostics.count) return status;
    if (call->context->hear) {
        tell_messages(call->context, call->diagnostics.first);
    } else {
        pthread_mutex_lock(&call->context->mutex);
        keep_messages(call->context, call->diagnostics.first);
        pthread_mutex_unlock(&call->context->mutex);
    }
    uir_diagnostics_clear(&call->diagnostics);
    return status;
}

uir_status uir_call_end(uir_call *call, uir_status status, const char *what) {
    uir_call_flush(call, status, what);
    uir_diagnostics_deinit(&call->diagnostics);
    return status;
}
