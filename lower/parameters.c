/* The text of a tuning record. */
#include "lower/parameters.h"

#include "ir/machine/device.h"

const char *uir_stationary_name(uir_stationary stationary) {
    static const char *const names[] = {"sums", "left", "right"};
    return names[stationary];
}

static uir_status read_size(uir_tokenizer *tokens, int64_t most, const char *what, int64_t *out) {
    uir_token at = tokens->current;
    UIR_TRY(uir_tokenizer_expect_integer(tokens, out));
    if (*out >= 1 && *out <= most) return UIR_STATUS_OK;
    return uir_tokenizer_error_at(tokens, &at, "%s must be 1 to %lld", what, (long long)most);
}

static uir_status read_tile(uir_tokenizer *tokens, uir_parameters *p) {
    uir_parameter_tile tile = {0};
    if (p->tile_count == UIR_PARAMETERS_MAX_TILES)
        return uir_tokenizer_error_at(tokens, &tokens->previous, "a record has at most %d tiles",
                                      UIR_PARAMETERS_MAX_TILES);
    UIR_TRY(read_size(tokens, UIR_PARAMETERS_MAX_SIZE, "the number of rows of a tile", &tile.rows));
    if (uir_tokenizer_accept(tokens, "x"))
        UIR_TRY(read_size(tokens, UIR_PARAMETERS_MAX_SIZE, "the number of columns of a tile", &tile.columns));
    if (uir_tokenizer_accept(tokens, "cost")) UIR_TRY(read_size(tokens, INT64_MAX, "the cost of a tile", &tile.cost));
    p->tiles[p->tile_count++] = tile;
    return UIR_STATUS_OK;
}

static uir_status read_stationary(uir_tokenizer *tokens, uir_parameters *p) {
    p->has_stationary = true;
    for (uint32_t i = UIR_STATIONARY_SUMS; i <= UIR_STATIONARY_RIGHT; i++) {
        if (!uir_tokenizer_accept(tokens, uir_stationary_name((uir_stationary)i))) continue;
        p->stationary = (uir_stationary)i;
        if (i == UIR_STATIONARY_SUMS) return UIR_STATUS_OK;
        return read_size(tokens, UIR_MACHINE_MAX_SPACES, "the number of spaces of a stationary operand", &p->held);
    }
    return uir_tokenizer_error(tokens, "expected sums, left or right");
}

uir_status uir_parameters_parse(uir_tokenizer *tokens, uir_parameters *out) {
    *out = (uir_parameters){0};
    UIR_TRY(uir_tokenizer_expect(tokens, "{"));
    if (uir_tokenizer_accept(tokens, "every")) out->every = true;
    while (!uir_tokenizer_accept(tokens, "}")) {
        if (!out->depth && uir_tokenizer_accept(tokens, "depth"))
            UIR_TRY(read_size(tokens, UIR_PARAMETERS_MAX_SIZE, "the depth", &out->depth));
        else if (!out->has_stationary && uir_tokenizer_accept(tokens, "stationary"))
            UIR_TRY(read_stationary(tokens, out));
        else if (!out->every && uir_tokenizer_accept(tokens, "tile"))
            UIR_TRY(read_tile(tokens, out));
        else
            return uir_tokenizer_error(tokens, "expected %s%s%s'}'", out->depth ? "" : "'depth' or ",
                                       out->has_stationary ? "" : "'stationary' or ", out->every ? "" : "'tile' or ");
    }
    return UIR_STATUS_OK;
}

void uir_parameters_print(const uir_parameters *p, uir_text *text) {
    uir_text_append_string(text, "{\n");
    if (p->every) uir_text_append_string(text, "  every\n");
    if (p->depth) uir_text_append_format(text, "  depth %lld\n", (long long)p->depth);
    if (p->has_stationary) {
        uir_text_append_format(text, "  stationary %s", uir_stationary_name(p->stationary));
        if (p->held) uir_text_append_format(text, " %lld", (long long)p->held);
        uir_text_append_string(text, "\n");
    }
    for (uint32_t i = 0; i < p->tile_count; i++) {
        const uir_parameter_tile *tile = &p->tiles[i];
        uir_text_append_format(text, "  tile %lld", (long long)tile->rows);
        if (tile->columns) uir_text_append_format(text, " x %lld", (long long)tile->columns);
        if (tile->cost) uir_text_append_format(text, " cost %lld", (long long)tile->cost);
        uir_text_append_string(text, "\n");
    }
    uir_text_append_string(text, "}\n");
}
