/* Lists of like records in a JSON text, or lines of them, cut out of it and turned into columns in one pass.
 *
 * A prediction file is mostly lists of objects with the same names in the same order: [{"video": "a", "span": [1, 2]}, …].
 * Every such list becomes its number, as in [7], in a copy of the text, whose rest any JSON parser reads in no time;
 * what the records hold becomes columns: numbers, lists of equally many numbers, and texts as places in a list of
 * distinct ones. Anything else (null, true, a name missing, a list of another length) and the whole text is
 * refused: this is a short cut and no parser, so it may refuse what is right but never accept what is wrong.
 */
#include <locale.h>

#include "kernels.h"

/* What formats/record_lists.py reads, field by field. */
#define JSON_MAX_COLUMNS 24

typedef struct {
    int32_t kind;              /* 1 text, 2 number, 3 list of numbers; 0 where no record has been seen */
    int64_t width;             /* of lists */
    int64_t key_at, key_size;  /* its name, in the text */
    int64_t whole;             /* how many of the numbers are written as whole ones */
    int64_t used;              /* numbers or codes */
    double *numbers;
    int32_t *codes;            /* places in the list of distinct texts */
    int64_t names;             /* distinct texts, by first appearance */
    int64_t *name_at, *name_size;
    int32_t *table;            /* of hashed places; the rest is for the making alone */
    int64_t slots, room, name_room;
} json_column;

typedef struct {
    int64_t records, groups;
    int64_t *counts;           /* records per list */
    int64_t columns;
    char *rest;                /* the text, each list of records being its number in brackets */
    int64_t rest_size;
    int64_t group_room, rest_room;
    json_column column[JSON_MAX_COLUMNS];
} json_cut;

enum { TEXT = 1, NUMBER = 2, LIST = 3 };

typedef struct {
    const unsigned char *at, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

/* Whether the next character after white space is this one, which is then passed. */
static int pass(cursor *c, unsigned char wanted) {
    skip_space(c);
    if (c->at >= c->end || *c->at != wanted) return 0;
    c->at++;
    return 1;
}

/* Passes a text, of which the cursor is at the opening quote; *from and *size tell what is between the quotes. */
static int pass_text(cursor *c, const unsigned char **from, int64_t *size) {
    if (c->at >= c->end || *c->at != '"') return 0;
    const unsigned char *p = c->at + 1;
    *from = p;
    for (; p < c->end; p++) {
        if (*p == '"') {
            *size = p - *from;
            c->at = p + 1;
            return 1;
        }
        if (*p < 0x20) return 0;
        if (*p == '\\' && ++p >= c->end) return 0;
    }
    return 0;
}

static const double POWERS[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Passes a number. Where 53 bits hold its digits and a power of ten is exact, one rounding gives the nearest double
 * (Clinger 1990); the others are the C library's. Whole numbers beyond 53 bits are refused. */
static int pass_number(cursor *c, double *value, int *whole) {
    const unsigned char *from = c->at, *p = from, *end = c->end;
    int negative = p < end && *p == '-';
    p += negative;
    uint64_t digits = 0;
    int count = 0, exponent = 0;
    const unsigned char *first = p;
    while (p < end && *p >= '0' && *p <= '9') {
        if (count < 19) digits = digits * 10 + (*p - '0'), count += digits > 0;
        else exponent++, count++;
        p++;
    }
    if (p == first || (*first == '0' && p - first > 1)) return 0;
    *whole = 1;
    if (p < end && *p == '.') {
        *whole = 0;
        first = ++p;
        while (p < end && *p >= '0' && *p <= '9') {
            if (count < 19) digits = digits * 10 + (*p - '0'), count += digits > 0, exponent--;
            else count++;
            p++;
        }
        if (p == first) return 0;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        *whole = 0;
        int below = 0, power = 0;
        p++;
        if (p < end && (*p == '+' || *p == '-')) below = *p++ == '-';
        first = p;
        while (p < end && *p >= '0' && *p <= '9') {
            if (power < 10000) power = power * 10 + (*p - '0');
            p++;
        }
        if (p == first) return 0;
        exponent += below ? -power : power;
    }
    if (p >= end) return 0; /* a text of ours never ends with a number, and strtod must not read beyond it */
    c->at = p;
    int exact = count <= 19 && digits <= (UINT64_C(1) << 53);
    if (*whole) {
        if (!exact) return 0;
        *value = negative ? (double)-(int64_t)digits : (double)(int64_t)digits;
        return 1;
    }
    if (exact && exponent >= -22 && exponent <= 22) {
        double magnitude = exponent < 0 ? (double)digits / POWERS[-exponent] : (double)digits * POWERS[exponent];
        *value = negative ? -magnitude : magnitude;
        return 1;
    }
    *value = strtod((const char *)from, NULL);
    return *value - *value == 0; /* not infinite */
}

/* --- What grows ------------------------------------------------------------------------------------------------- */

static void *grown(void *array, int64_t used, int64_t *room, int64_t more, size_t size) {
    if (used + more <= *room) return array;
    int64_t wanted = *room * 2 > used + more ? *room * 2 : used + more;
    if (wanted < 1024) wanted = 1024;
    void *larger = realloc(array, (size_t)wanted * size);
    if (larger) *room = wanted;
    return larger;
}

#define RESERVE(array, used, room, more)                                      \
    do {                                                                      \
        void *larger_ = grown(array, used, &(room), more, sizeof *(array));   \
        if (!larger_) return 0;                                               \
        (array) = larger_;                                                    \
    } while (0)

static uint64_t hash_of(const unsigned char *from, int64_t size) {
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)size;
    for (; size >= 8; size -= 8, from += 8) {
        uint64_t eight;
        memcpy(&eight, from, 8);
        hash = (hash ^ eight) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, from, (size_t)size);
    hash = (hash ^ rest) * UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ (hash >> 32);
}

/* Finds a text among those of a column, or adds it. */
static int place_text(const unsigned char *data, json_column *column, const unsigned char *from, int64_t size) {
    if (2 * (column->names + 1) > column->slots) {
        int64_t slots = column->slots ? column->slots * 2 : 1024;
        int32_t *table = malloc((size_t)slots * sizeof *table);
        if (!table) return 0;
        for (int64_t i = 0; i < slots; i++) table[i] = -1;
        for (int64_t i = 0; i < column->names; i++) {
            uint64_t slot = hash_of(data + column->name_at[i], column->name_size[i]) & (uint64_t)(slots - 1);
            while (table[slot] >= 0) slot = (slot + 1) & (uint64_t)(slots - 1);
            table[slot] = (int32_t)i;
        }
        free(column->table);
        column->table = table;
        column->slots = slots;
    }
    uint64_t slot = hash_of(from, size) & (uint64_t)(column->slots - 1);
    int32_t found;
    while ((found = column->table[slot]) >= 0) {
        if (column->name_size[found] == size && !memcmp(data + column->name_at[found], from, (size_t)size)) break;
        slot = (slot + 1) & (uint64_t)(column->slots - 1);
    }
    if (found < 0) {
        if (column->names >= INT32_MAX / 2) return 0;
        int64_t room = column->name_room;
        RESERVE(column->name_at, column->names, room, 1);
        RESERVE(column->name_size, column->names, column->name_room, 1);
        found = column->table[slot] = (int32_t)column->names;
        column->name_at[column->names] = from - data;
        column->name_size[column->names++] = size;
    }
    RESERVE(column->codes, column->used, column->room, 1);
    column->codes[column->used++] = found;
    return 1;
}

static int put_number(json_column *column, double value, int whole) {
    RESERVE(column->numbers, column->used, column->room, 1);
    column->numbers[column->used++] = value;
    column->whole += whole;
    return 1;
}

/* --- Records ---------------------------------------------------------------------------------------------------- */

/* The value of a column. The first record says which kind it has, and how long its lists are. */
static int pass_value(cursor *c, const unsigned char *data, json_column *column, int first) {
    skip_space(c);
    if (c->at >= c->end) return 0;
    int kind = *c->at == '"' ? TEXT : *c->at == '[' ? LIST : NUMBER;
    if (first) column->kind = kind;
    else if (kind != column->kind) return 0;
    double value;
    int whole;
    if (kind == TEXT) {
        const unsigned char *from;
        int64_t size;
        return pass_text(c, &from, &size) && place_text(data, column, from, size);
    }
    if (kind == NUMBER) return pass_number(c, &value, &whole) && put_number(column, value, whole);
    c->at++;
    int64_t width = 0;
    do {
        skip_space(c);
        if (!pass_number(c, &value, &whole) || !put_number(column, value, whole)) return 0;
        width++;
    } while (pass(c, ','));
    if (!pass(c, ']')) return 0;
    if (first) column->width = width;
    return width == column->width;
}

static int pass_record(cursor *c, const unsigned char *data, json_cut *cut) {
    int first = cut->records == 0, i = 0;
    if (!pass(c, '{')) return 0;
    do {
        const unsigned char *name;
        int64_t size;
        skip_space(c);
        if (i == JSON_MAX_COLUMNS || !pass_text(c, &name, &size)) return 0;
        json_column *column = cut->column + i;
        if (first) {
            column->key_at = name - data;
            column->key_size = size;
            cut->columns = i + 1;
        } else if (i >= cut->columns || size != column->key_size || memcmp(data + column->key_at, name, (size_t)size)) {
            return 0;
        }
        if (!pass(c, ':') || !pass_value(c, data, column, first)) return 0;
        i++;
    } while (pass(c, ','));
    if (i != cut->columns || !pass(c, '}')) return 0;
    cut->records++;
    return 1;
}

static int pass_list(cursor *c, const unsigned char *data, json_cut *cut) {
    int64_t before = cut->records;
    c->at++; /* the bracket */
    do {
        if (!pass_record(c, data, cut)) return 0;
    } while (pass(c, ','));
    if (!pass(c, ']')) return 0;
    RESERVE(cut->counts, cut->groups, cut->group_room, 1);
    cut->counts[cut->groups++] = cut->records - before;
    return 1;
}

/* --- The text around them --------------------------------------------------------------------------------------- */

static int keep(json_cut *cut, const void *from, int64_t size) {
    RESERVE(cut->rest, cut->rest_size, cut->rest_room, size);
    memcpy(cut->rest + cut->rest_size, from, (size_t)size);
    cut->rest_size += size;
    return 1;
}

static int keep_number(json_cut *cut, int64_t number) {
    char text[32];
    int size = 32;
    text[--size] = ']';
    do text[--size] = (char)('0' + number % 10);
    while (number /= 10);
    text[--size] = '[';
    return keep(cut, text + size, 32 - size);
}

/* Whether the objects of a list hold no other objects, as far as the first of them tells. */
static int is_flat(const cursor *list) {
    cursor c = *list;
    int depth = 0;
    for (; c.at < c.end; c.at++) {
        if (*c.at == '"') {
            const unsigned char *from;
            int64_t size;
            if (!pass_text(&c, &from, &size)) return 0;
            c.at--;
        } else if (*c.at == '{' && ++depth > 1) {
            return 0;
        } else if (*c.at == '}') {
            return 1;
        }
    }
    return 0;
}

/* JSON Lines: a record on each of several lines. */
static int cut_lines(const unsigned char *data, int64_t size, json_cut *cut) {
    cursor c = {data, data + size};
    skip_space(&c);
    if (c.at >= c.end || *c.at != '{' || !is_flat(&c)) return 0;
    do {
        const unsigned char *from = c.at;
        if (!pass_record(&c, data, cut) || memchr(from, '\n', (size_t)(c.at - from))) return 0;
        const unsigned char *behind = c.at;
        skip_space(&c);
        if (c.at < c.end && !memchr(behind, '\n', (size_t)(c.at - behind))) return 0;
    } while (c.at < c.end);
    RESERVE(cut->counts, cut->groups, cut->group_room, 1);
    cut->counts[cut->groups++] = cut->records;
    return cut->records > 1 && keep_number(cut, 0);
}

/* Whether a list, of which the cursor is behind the bracket, holds one whole number and nothing else. */
static int is_number_alone(cursor c) {
    const unsigned char *first = c.at;
    while (c.at < c.end && *c.at >= '0' && *c.at <= '9') c.at++;
    return c.at > first && pass(&c, ']');
}

static int cut_text(const unsigned char *data, int64_t size, json_cut *cut) {
    cursor c = {data, data + size};
    const unsigned char *copied = data;
    while (c.at < c.end) {
        if (*c.at == '"') {
            const unsigned char *from;
            int64_t length;
            if (!pass_text(&c, &from, &length)) return 0;
        } else if (*c.at == '[') {
            cursor ahead = {c.at + 1, c.end};
            skip_space(&ahead);
            if (ahead.at < ahead.end && *ahead.at == '{' && is_flat(&ahead)) {
                if (!keep(cut, copied, c.at - copied) || !keep_number(cut, cut->groups)) return 0;
                if (!pass_list(&c, data, cut)) return 0;
                copied = c.at;
            } else if (is_number_alone(ahead)) {
                return 0; /* which would look like one of ours */
            } else {
                c.at++;
            }
        } else {
            c.at++;
        }
    }
    return cut->groups && keep(cut, copied, c.end - copied);
}

static void forget(json_cut *cut) {
    for (int i = 0; i < JSON_MAX_COLUMNS; i++) {
        json_column *column = cut->column + i;
        free(column->numbers);
        free(column->codes);
        free(column->name_at);
        free(column->name_size);
        free(column->table);
    }
    free(cut->counts);
    free(cut->rest);
    memset(cut, 0, sizeof *cut);
}

EXPORT void json_cut_free(json_cut *cut) {
    forget(cut);
    free(cut);
}

EXPORT json_cut *json_cut_records(const unsigned char *data, int64_t size) {
    const char *point = localeconv()->decimal_point;
    if (point[0] != '.' || point[1]) return NULL; /* strtod would read other numbers */
    json_cut *cut = calloc(1, sizeof *cut);
    if (!cut) return NULL;
    if (cut_lines(data, size, cut)) return cut;
    forget(cut);
    if (cut_text(data, size, cut)) return cut;
    json_cut_free(cut);
    return NULL;
}
