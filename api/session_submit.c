/* Sessions: runs in flight. A thread of the session runs them, on every device, so a submission returns at once. */
#include "api/internal.h"

#include <signal.h>

enum { STACK_BYTES = 8 << 20 }; /* nested graphs of the greatest depth go down by themselves */

typedef struct uir_session_worker {
    uir_session *session;
    pthread_t thread;
    pthread_mutex_t lock;    /* guards the members below */
    pthread_cond_t changed;  /* of any of them */
    bool is_asked, is_ended; /* a run; the thread */
    uir_status status;       /* of the last run */
} uir_session_worker;

static void *work(void *user) {
    uir_session_worker *worker = user;
    pthread_mutex_lock(&worker->lock);
    while (!worker->is_ended) {
        if (!worker->is_asked) {
            pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        uir_status status = uir_session_execute(worker->session);
        pthread_mutex_lock(&worker->lock);
        worker->status = status;
        worker->is_asked = false;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

/* Signals are the program's own threads'. */
static bool start_thread(uir_session_worker *worker) {
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    if (pthread_attr_init(&attributes)) return false;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                pthread_create(&worker->thread, &attributes, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return good;
}

static uir_status create_worker(uir_session *session) {
    uir_session_worker *worker;
    UIR_TRY_ALLOCATE(worker, uir_allocate_zeroed(&session->allocator, sizeof *worker));
    worker->session = session;
    bool has_lock = pthread_mutex_init(&worker->lock, NULL) == 0,
         has_condition = has_lock && pthread_cond_init(&worker->changed, NULL) == 0;
    if (has_condition && start_thread(worker)) {
        session->worker = worker;
        return UIR_STATUS_OK;
    }
    if (has_condition) pthread_cond_destroy(&worker->changed);
    if (has_lock) pthread_mutex_destroy(&worker->lock);
    uir_release(&session->allocator, worker, sizeof *worker);
    return uir_error(&session->call.diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL,
                     "the session's thread cannot be started");
}

void uir_session_end_worker(uir_session *session) {
    uir_session_worker *worker = session->worker;
    if (!worker) return;
    pthread_mutex_lock(&worker->lock);
    while (worker->is_asked) pthread_cond_wait(&worker->changed, &worker->lock);
    worker->is_ended = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    uir_release(&session->allocator, worker, sizeof *worker);
    session->worker = NULL;
}

uir_status uir_session_check_idle(const uir_session *session, const char *what) {
    uir_call call;
    if (!session->in_flight) return UIR_STATUS_OK;
    uir_call_begin(&call, session->model->context);
    uir_status status = uir_error_hint(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                       "call uir_session_wait first", "%s: a run of the session is in flight", what);
    return uir_call_end(&call, status, what);
}

uir_status uir_session_submit(uir_session *session) {
    static const char *const what = "submitting a run";
    UIR_TRY(uir_session_check_idle(session, what));
    if (!session->worker) {
        uir_status status = create_worker(session);
        if (status != UIR_STATUS_OK) return uir_call_flush(&session->call, status, what);
    }
    session->in_flight = true;
    pthread_mutex_lock(&session->worker->lock);
    session->worker->is_asked = true;
    pthread_cond_broadcast(&session->worker->changed);
    pthread_mutex_unlock(&session->worker->lock);
    return UIR_STATUS_OK;
}

bool uir_session_poll(const uir_session *session) {
    if (!session->in_flight) return true;
    pthread_mutex_lock(&session->worker->lock);
    bool is_over = !session->worker->is_asked;
    pthread_mutex_unlock(&session->worker->lock);
    return is_over;
}

uir_status uir_session_wait(uir_session *session) {
    uir_session_worker *worker = session->worker;
    if (!session->in_flight) {
        uir_status status =
            uir_error_hint(&session->call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "call uir_session_submit first", "waiting for a run: none of the session is in flight");
        return uir_call_flush(&session->call, status, "waiting for a run");
    }
    pthread_mutex_lock(&worker->lock);
    while (worker->is_asked) pthread_cond_wait(&worker->changed, &worker->lock);
    uir_status status = worker->status;
    pthread_mutex_unlock(&worker->lock);
    session->in_flight = false;
    /* A request to stop that came too late was for this run. */
    if (session->runtime) uir_runtime_forget_cancel(session->runtime);
    __atomic_store_n(&session->cancel, false, __ATOMIC_RELAXED);
    return uir_call_flush(&session->call, status, "running the model");
}
