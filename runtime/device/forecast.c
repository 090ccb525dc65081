/* What a run asks of the bus and of the host's patience, before it: the walk of a plan's steps on queues that count. */
#include "runtime/internal.h"

#include <string.h>

enum { MOST_STEPS = 1 << 24 };

/* ---- queues that only count their points ---- */
struct uir_driver_queue {
    uint64_t marked;
};

static uir_status count_mark(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point) {
    (void)diagnostics;
    *out_point = ++queue->marked;
    return UIR_STATUS_OK;
}

static uir_status count_follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                               uir_diagnostics *diagnostics) {
    (void)queue, (void)other, (void)point, (void)diagnostics;
    return UIR_STATUS_OK;
}

static uir_status count_wait(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                             uir_driver_failure *out_failure) {
    (void)queue, (void)point, (void)cancel, (void)out_failure;
    return UIR_STATUS_OK;
}

static const uir_driver counting_driver = {
    .version = UIR_DRIVER_VERSION, .name = "", .mark = count_mark, .follow = count_follow, .wait = count_wait};

/* ---- the walk ---- */
typedef struct forecast {
    uir_runtime *r;
    uint64_t *calls; /* by step: of the last run, and not walked yet; NULL: a planned run */
    uint64_t left;   /* steps that may still be walked */
    uir_runtime_bus unknown;
} forecast;

static uir_status walk_block(forecast *f, uint32_t block);

static uint32_t input_of(const uir_runtime *r, uint32_t step, uint32_t k) {
    return uir_plan_get_word(r->plan, r->plan->steps[step].inputs, k);
}

static bool is_on_device(const uir_runtime *r, uint32_t tensor) {
    return uir_plan_get_domain(r->plan, tensor) == UIR_PLAN_ON_DEVICE;
}

static bool is_sized(const uir_runtime *r, uint32_t tensor) {
    return r->epochs[r->analysis->tensors[tensor].epoch].valid && !r->tensors[tensor].invalid;
}

/* A copy that a step makes within a domain, whose bytes cross no bus. */
static void note_own_copy(const forecast *f, uint32_t tensor) {
    if (is_on_device(f->r, tensor) && (!is_sized(f->r, tensor) || f->r->tensors[tensor].bytes))
        uir_rt_note_request(f->r, UIR_PLAN_QUEUE_COMPUTE);
}

static uir_status walk_copy(forecast *f, uint32_t step) {
    uir_runtime *r = f->r;
    uint32_t from = input_of(r, step, 0), to = uir_plan_get_word(r->plan, r->plan->steps[step].outputs, 0),
             queue = uir_plan_get_queue(r->plan, step);
    bool is_port = uir_plan_is_port_copy(r->plan, &r->plan->steps[step]);
    if (queue == UIR_PLAN_QUEUE_HOST || (is_port && uir_rt_is_bound_there(r, from))) return UIR_STATUS_OK;
    if (is_sized(r, from)) {
        uir_rt_count_copy(r, queue, is_on_device(r, from), is_on_device(r, to), r->tensors[from].bytes);
        return UIR_STATUS_OK;
    }
    uir_rt_note_request(r, queue);
    f->unknown.unknown_sizes += is_on_device(r, from) != is_on_device(r, to);
    return UIR_STATUS_OK;
}

static uir_status walk_launch(forecast *f, uint32_t step) {
    const uir_rt_step_info *info = &f->r->analysis->steps[step];
    const uir_rt_launch *l = &f->r->launches[info->index];
    bool is_known = f->r->epochs[info->launch_epoch].valid;
    if (uir_rt_is_on_device(f->r, step) && !(is_known && (l->idle || l->invalid)))
        uir_rt_note_request(f->r, UIR_PLAN_QUEUE_COMPUTE);
    return UIR_STATUS_OK;
}

/* Sizes that are found in a body may be others in its next turn: then the run waits before it plans their memory. */
static uir_status walk_host(forecast *f, uint32_t step) {
    const uir_rt_step_info *info = &f->r->analysis->steps[step];
    f->unknown.unknown_sizes += info->conditional && info->epoch != UIR_PLAN_NONE;
    return UIR_STATUS_OK;
}

/* ---- bodies ---- */
/* The integer in a tensor of one element that each run has alike. */
static bool find_integer(const uir_runtime *r, uint32_t tensor, int64_t *out_value) {
    uint32_t root = r->analysis->tensors[tensor].root, writer = r->analysis->tensors[root].writer;
    const uir_plan_tensor *t = &r->plan->tensors[root];
    if (!is_sized(r, root) || !r->tensors[root].bytes) return false;
    if (t->storage == UIR_PLAN_STORAGE_CONSTANT) {
        const uir_region at = uir_rt_constant_region(r->package, t->index, UIR_PLAN_ON_HOST);
        *out_value = uir_dtype_load_integer((uir_dtype)t->dtype, at.host, 0);
        return true;
    }
    if (writer == UIR_PLAN_NONE || r->plan->steps[writer].kind != UIR_PLAN_STEP_DIMS) return false;
    uir_plan_list values = r->plan->steps[writer].values;
    return values.count &&
           uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, values, 0), r->values, r->bound, out_value);
}

/* Runs of a block that are left in the last run; `of`: of the step whose body it is. */
static uint64_t count_runs(const forecast *f, uint32_t block, uint64_t of) {
    const uir_plan_block *b = &f->r->plan->blocks[block];
    return b->step_count ? f->calls[b->first_step] : of;
}

/* False: only the run knows. */
static bool find_turns(const forecast *f, uint32_t step, uint64_t *out_turns) {
    const uir_runtime *r = f->r;
    const uir_plan_step *s = &r->plan->steps[step];
    const uir_plan_block *body = &r->plan->blocks[s->target];
    uint32_t trips = input_of(r, step, 0), first = input_of(r, step, 1);
    int64_t value, condition = 1;
    if (f->calls) {
        uint64_t calls = f->calls[step] + 1; /* this one is walked */
        *out_turns = count_runs(f, s->target, calls) / calls;
        return true;
    }
    if (first != UIR_PLAN_NONE && !find_integer(r, first, &condition)) return false;
    if (trips == UIR_PLAN_NONE || !find_integer(r, trips, &value)) return false;
    *out_turns = value > 0 && condition ? (uint64_t)value : 0;
    if (*out_turns < 2) return true;
    uint32_t next = uir_plan_get_word(r->plan, body->outputs, 0);
    if (r->analysis->tensors[next].root == uir_plan_get_word(r->plan, body->inputs, 1)) return true;
    return find_integer(r, next, &condition) && condition;
}

static uir_status walk_turn(forecast *f, uint32_t step) {
    uir_runtime *r = f->r;
    const uir_plan_step *s = &r->plan->steps[step];
    const uir_plan_block *body = &r->plan->blocks[s->target];
    uint32_t kept;
    UIR_TRY(uir_rt_begin_turn(r, step, &kept));
    UIR_TRY(walk_block(f, s->target));
    UIR_TRY(uir_rt_end_body(r, step, s->target));
    for (uint32_t i = 1; i < body->outputs.count; i++) {
        uint32_t inner = uir_plan_get_word(r->plan, body->outputs, i);
        if (i > s->inputs.count - 2 || uir_rt_copies_result(r, step, i - 1, inner)) note_own_copy(f, inner);
    }
    return uir_rt_spread(r, step);
}

static uir_runtime_bus count_so_far(const forecast *f) {
    const uir_runtime_statistics *s = &f->r->statistics;
    uir_runtime_bus bus = f->unknown;
    bus.waits = s->waits;
    bus.bytes_to_device = s->bytes_to_device;
    bus.bytes_from_device = s->bytes_from_device;
    return bus;
}

static void set_so_far(forecast *f, const uir_runtime_bus *bus) {
    f->r->statistics.waits = bus->waits;
    f->r->statistics.bytes_to_device = bus->bytes_to_device;
    f->r->statistics.bytes_from_device = bus->bytes_from_device;
    f->unknown = *bus;
}

/* `times` as much as was counted since. */
static void repeat_since(forecast *f, const uir_runtime_bus *since, uint64_t times) {
    uir_runtime_bus now = count_so_far(f);
    now.waits += (now.waits - since->waits) * times;
    now.bytes_to_device += (now.bytes_to_device - since->bytes_to_device) * times;
    now.bytes_from_device += (now.bytes_from_device - since->bytes_from_device) * times;
    set_so_far(f, &now);
}

/* One turn counts; what a further one adds is noted. */
static uir_status walk_open_loop(forecast *f, uint32_t step) {
    uir_rt_loop *loop = &f->r->loops[f->r->analysis->steps[step].index];
    UIR_TRY(walk_turn(f, step));
    f->unknown.unknown_turns++;
    const uir_runtime_bus once = count_so_far(f);
    UIR_TRY(walk_turn(f, step));
    const uir_runtime_bus twice = count_so_far(f);
    set_so_far(f, &once);
    loop->is_open = true;
    loop->turn = (uir_runtime_bus){.waits = twice.waits - once.waits,
                                   .bytes_to_device = twice.bytes_to_device - once.bytes_to_device,
                                   .bytes_from_device = twice.bytes_from_device - once.bytes_from_device};
    return UIR_STATUS_OK;
}

/* Turns whose number is known before are alike from the RT_TURNS-th on, but for the wait of each RT_TURNS-th. */
static uir_status walk_turns(forecast *f, uint32_t step, uint64_t turns) {
    uint64_t periods = f->calls || turns < 3 * RT_TURNS ? 0 : turns / RT_TURNS - 2;
    for (uint64_t i = 0; i < turns - periods * RT_TURNS - (periods ? RT_TURNS : 0); i++) UIR_TRY(walk_turn(f, step));
    const uir_runtime_bus since = count_so_far(f);
    for (uint64_t i = 0; i < RT_TURNS && periods; i++) UIR_TRY(walk_turn(f, step));
    repeat_since(f, &since, periods);
    return UIR_STATUS_OK;
}

static uir_status walk_loop(forecast *f, uint32_t step) {
    uir_runtime *r = f->r;
    const uir_plan_step *s = &r->plan->steps[step];
    uint64_t turns;
    if (uir_rt_gives_nothing(r, step)) return UIR_STATUS_OK;
    f->unknown.unknown_sizes += r->analysis->blocks[s->target].epoch != UIR_PLAN_NONE;
    UIR_TRY(find_turns(f, step, &turns) ? walk_turns(f, step, turns) : walk_open_loop(f, step));
    return walk_host(f, step);
}

static uir_status walk_if(forecast *f, uint32_t step) {
    uir_runtime *r = f->r;
    const uir_plan_step *s = &r->plan->steps[step];
    int64_t condition = 1;
    if (f->calls) {
        const uir_plan_block *then = &r->plan->blocks[s->target];
        condition = then->step_count ? f->calls[then->first_step] != 0 : count_runs(f, s->other, 0) == 0;
    } else if (!find_integer(r, input_of(r, step, 0), &condition)) {
        f->unknown.unknown_branches++;
    }
    uint32_t block = condition ? s->target : s->other;
    UIR_TRY(walk_block(f, block));
    UIR_TRY(uir_rt_end_body(r, step, block));
    for (uint32_t i = 0; i < r->plan->blocks[block].outputs.count; i++) {
        uint32_t inner = uir_plan_get_word(r->plan, r->plan->blocks[block].outputs, i);
        if (uir_rt_copies_result(r, step, i, inner)) note_own_copy(f, inner);
    }
    UIR_TRY(uir_rt_spread(r, step));
    return walk_host(f, step);
}

static uir_status walk_block(forecast *f, uint32_t block) {
    static uir_status (*const walkers[UIR_PLAN_STEP_KIND_COUNT])(forecast *, uint32_t) = {
        [UIR_PLAN_STEP_LAUNCH] = walk_launch, [UIR_PLAN_STEP_COPY] = walk_copy, [UIR_PLAN_STEP_HOST] = walk_host,
        [UIR_PLAN_STEP_BIND] = walk_host,     [UIR_PLAN_STEP_DIMS] = walk_host, [UIR_PLAN_STEP_CHECK] = walk_host,
        [UIR_PLAN_STEP_LOOP] = walk_loop,     [UIR_PLAN_STEP_IF] = walk_if,
    };
    uir_runtime *r = f->r;
    const uir_plan_block *b = &r->plan->blocks[block];
    for (uint32_t i = 0; i < b->step_count; i++) {
        uint32_t step = b->first_step + i;
        if (!f->left--)
            return uir_error(r->diagnostics, UIR_STATUS_LIMIT, NULL,
                             "the plan's loops turn too often: its waits cannot be counted before a run");
        if (f->calls && f->calls[step]) f->calls[step]--;
        UIR_TRY(uir_rt_begin_step(r, step));
        UIR_TRY(walkers[r->plan->steps[step].kind](f, step));
        UIR_TRY(uir_rt_end_step(r, step));
    }
    return UIR_STATUS_OK;
}

/* ---- the answer ---- */
/* Inputs that the caller has on the device and the host reads: the run begins with their copies. */
static uir_status fetch_inputs(forecast *f) {
    uir_runtime *r = f->r;
    for (uint32_t i = 0; i < r->plan->inputs_count; i++)
        if (r->bound_inputs[i].at.buffer && r->analysis->is_host_input[i])
            uir_rt_count_copy(r, UIR_PLAN_QUEUE_DOWNLOAD, true, false, r->tensors[r->plan->inputs[i].tensor].bytes);
    return uir_rt_drain(r);
}

static uir_status walk_run(forecast *f) {
    UIR_TRY(fetch_inputs(f));
    UIR_TRY(walk_block(f, 0));
    return uir_rt_drain(f->r);
}

/* On queues that count, in place of the runtime's own. */
static uir_status count_bus(forecast *f, uir_runtime_bus *out_bus) {
    uir_runtime *r = f->r;
    const uir_rt_queues own = r->queues;
    const uir_runtime_statistics statistics = r->statistics;
    struct uir_driver_queue counting[UIR_PLAN_QUEUE_COUNT] = {{0}};
    r->queues = (uir_rt_queues){.driver = &counting_driver, .points = own.points};
    r->statistics = (uir_runtime_statistics){0};
    for (uint32_t i = UIR_PLAN_QUEUE_COMPUTE; i < UIR_PLAN_QUEUE_COUNT; i++)
        r->queues.queues[i] = &counting[uir_rt_find_owner(r, i)];
    memset(own.points, 0, r->plan->steps_count * sizeof *own.points);
    for (uint32_t i = 0; i < r->analysis->loop_count; i++) {
        r->loops[i].turns = 0;
        r->loops[i].is_open = false;
    }
    uir_status status = walk_run(f);
    *out_bus = count_so_far(f);
    r->queues = own;
    r->statistics = statistics;
    return status;
}

uir_status uir_runtime_count_bus(uir_runtime *r, bool of_run, uir_runtime_bus *out_bus) {
    forecast f = {.r = r, .left = MOST_STEPS};
    size_t size = ((size_t)r->plan->steps_count + 1) * sizeof *f.calls;
    *out_bus = (uir_runtime_bus){0};
    if (!r->plan->devices_count) return UIR_STATUS_OK;
    if (of_run ? !r->ran : !r->epochs[0].valid)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "no run was %s: its copies and waits cannot be counted", of_run ? "made" : "planned");
    if (of_run) {
        UIR_TRY_ALLOCATE(f.calls, uir_allocate(&r->allocator, size));
        for (uint32_t i = 0; i < r->plan->steps_count; i++) f.calls[i] = r->steps[i].calls;
    }
    uir_status status = count_bus(&f, out_bus);
    if (f.calls) uir_release(&r->allocator, f.calls, size);
    return status;
}

bool uir_runtime_get_turn_bus(const uir_runtime *r, uint32_t index, const char **out_node, const char **out_op,
                              uir_runtime_bus *out_bus) {
    for (uint32_t i = 0; i < r->plan->steps_count; i++) {
        const uir_plan_step *s = &r->plan->steps[i];
        if (s->kind != UIR_PLAN_STEP_LOOP || !r->loops[r->analysis->steps[i].index].is_open || index-- > 0) continue;
        *out_node = uir_plan_get_text(r->plan, s->node);
        *out_op = uir_plan_get_text(r->plan, s->op);
        *out_bus = r->loops[r->analysis->steps[i].index].turn;
        return true;
    }
    return false;
}
