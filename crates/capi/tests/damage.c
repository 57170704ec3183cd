/* Answers queries about damaged indexes through the C interface. tests/alone_allocator/damage_doors.rs makes the indexes,
 * runs this program, and compares its answers with those of undamaged indexes; its head specifies the lines of input and
 * output. `scripts/damage --door c` runs that test. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <twindex.h>

enum { LINE = 1 << 16 };

/* Prints a text as one line: each line end in it becomes a space. */
static void print_line(const char *text) {
    for (; *text != 0; text++) putchar(*text == '\n' || *text == '\r' ? ' ' : *text);
    putchar('\n');
}

static void print_bytes(const uint8_t *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) printf("%02x", bytes[i]);
}

/* Returns whether a call succeeded. If it failed, prints `mark` and the code, and frees the error. */
static int good(const char *mark, twindex_code code, twindex_error *error) {
    if (code == TWINDEX_CODE_OK) {
        if (error != NULL) puts("! a call that succeeded returned an error");
    } else if (code == TWINDEX_CODE_PANICKED || twindex_error_code(error) != code
               || twindex_error_message(error)[0] == 0) {
        printf("! code %d, the error has code %d: ", code, twindex_error_code(error));
        print_line(twindex_error_message(error));
    } else {
        printf("%s %d\n", mark, code);
    }
    twindex_error_free(error);
    return code == TWINDEX_CODE_OK;
}

#define GOOD(mark, call) (error = NULL, code = (call), good(mark, code, error))

static void print_hits(twindex_hits *hits) {
    size_t count = twindex_hits_len(hits), len;
    printf("+ hits %d more %d", count > 0, twindex_hits_has_more(hits));
    for (size_t i = 0; i < count; i++) {
        const uint8_t *key = twindex_hits_key(hits, i, &len);
        putchar(' ');
        print_bytes(key, len);
        printf(" %d %.9f", twindex_hits_distance(hits, i), twindex_hits_resemblance(hits, i));
    }
    putchar('\n');
    twindex_hits_free(hits);
}

static void answer_key(const twindex_snapshot *snapshot, const uint8_t *key, size_t key_len) {
    twindex_error *error;
    twindex_code code;
    twindex_record *record;
    bool contained;
    if (GOOD("-", twindex_snapshot_contains(snapshot, key, key_len, &contained, &error)))
        printf("+ %s\n", contained ? "contained" : "absent");
    if (!GOOD("-", twindex_snapshot_get(snapshot, key, key_len, &record, &error))) return;
    uint64_t fingerprint = 0, stamp = 0, priority = 0;
    size_t len = 0;
    if (record == NULL) {
        puts("+ absent");
        return;
    }
    int has_fingerprint = twindex_record_fingerprint(record, &fingerprint);
    int has_stamp = twindex_record_stamp(record, &stamp), has_priority = twindex_record_priority(record, &priority);
    const uint8_t *value = twindex_record_value(record, &len);
    printf("+ fingerprint %d %016" PRIx64 " stamp %d %" PRIu64 " priority %d %" PRIu64 " duplicate %d value ",
           has_fingerprint, fingerprint, has_stamp, stamp, has_priority, priority, twindex_record_is_duplicate(record));
    print_bytes(value, len);
    putchar('\n');
    twindex_record_free(record);
}

static void answer_text(const twindex_snapshot *snapshot, const twindex_sketcher *sketcher, const char *text) {
    twindex_error *error;
    twindex_code code;
    twindex_sketch *sketch;
    twindex_hits *hits;
    size_t len;
    if (GOOD("-", twindex_sketcher_sketch(sketcher, (const uint8_t *)text, strlen(text), &sketch, &error))) {
        uint64_t fingerprint = 0;
        int has_fingerprint = twindex_sketch_fingerprint(sketch, &fingerprint);
        twindex_sketch_set(sketch, &len);
        printf("+ sketch %d %016" PRIx64 " %zu\n", has_fingerprint, fingerprint, len);
    }
    /* If there is no sketch, these calls return the error for a null handle. */
    if (GOOD("-", twindex_snapshot_near(snapshot, sketch, 10, &hits, &error))) print_hits(hits);
    if (GOOD("-", twindex_snapshot_resembling(snapshot, sketch, 0.5, TWINDEX_QUERY_UNVERIFIED, 10, &hits, &error)))
        print_hits(hits);
    if (GOOD("-", twindex_snapshot_resembling(snapshot, sketch, 0.9, TWINDEX_QUERY_ESTIMATED, 10, &hits, &error)))
        print_hits(hits);
    twindex_sketch_free(sketch);
}

static void print_keys(const char *mark, const twindex_snapshot *snapshot) {
    twindex_error *error;
    twindex_code code;
    twindex_keys *keys;
    const uint8_t *key;
    size_t len;
    if (!GOOD(mark, twindex_snapshot_keys(snapshot, NULL, 0, &keys, &error))) return;
    /* Prints a hash after the last key, because an error after some keys must be the only answer. */
    uint64_t hash = 14695981039346656037U, count = 0;
    int no_error;
    while ((no_error = GOOD(mark, twindex_keys_next(keys, &key, &len, &error))) && key != NULL) {
        for (size_t i = 0; i <= len; i++) hash = (hash ^ (i < len ? key[i] : 256U)) * 1099511628211U;
        count++;
    }
    if (no_error) printf("+ %" PRIu64 " keys %016" PRIx64 "\n", count, hash);
    twindex_keys_free(keys);
}

static void answer_queries(const twindex_index *index, const twindex_snapshot *snapshot, const char *queries) {
    static char line[LINE];
    static uint8_t key[LINE / 2];
    twindex_error *error;
    twindex_code code;
    twindex_sketcher *sketcher;
    twindex_params *params;
    twindex_hits *hits;
    size_t len;
    printf("+ %" PRIu64 " documents, commit %" PRIu64 ", payload ", twindex_snapshot_documents(snapshot),
           twindex_snapshot_commit(snapshot));
    const uint8_t *payload = twindex_snapshot_payload(snapshot, &len);
    print_bytes(payload, payload == NULL ? 0 : len);
    putchar('\n');
    if (GOOD("-", twindex_index_params(index, &params, &error))) {
        printf("+ ");
        print_line(twindex_params_text(params));
    }
    twindex_params_free(params);
    print_keys("-", snapshot);
    if (GOOD("-", twindex_index_sketcher(index, &sketcher, &error))) puts("+ sketcher");
    FILE *file = fopen(queries, "r");
    if (file == NULL) exit(2);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        uint64_t number = strtoull(line + strcspn(line, " "), NULL, 10);
        if (strncmp(line, "key ", 4) == 0) {
            size_t key_len = 0;
            unsigned byte;
            for (const char *hex = line + 4; sscanf(hex, "%2x", &byte) == 1; hex += 2) key[key_len++] = (uint8_t)byte;
            answer_key(snapshot, key, key_len);
        } else if (strncmp(line, "number ", 7) == 0) {
            answer_key(snapshot, (const uint8_t *)&number, sizeof number);
        } else if (strncmp(line, "text ", 5) == 0) {
            answer_text(snapshot, sketcher, line + 5);
        } else if (strncmp(line, "fingerprint ", 12) == 0) {
            if (GOOD("-", twindex_snapshot_within(snapshot, number, 3, 10, &hits, &error))) print_hits(hits);
        } else {
            exit(2);
        }
    }
    fclose(file);
    twindex_sketcher_free(sketcher);
}

/* Writes to the index and merges it. Every call may fail. */
static void write_index(const twindex_index *index) {
    static const uint64_t key = 7;
    static const char text[] = "a rose is a rose is a rose";
    twindex_error *error;
    twindex_code code;
    twindex_writer *writer;
    twindex_snapshot *snapshot;
    if (GOOD("w", twindex_index_writer(index, &writer, &error))) {
        GOOD("w", twindex_writer_put_text(writer, (const uint8_t *)&key, sizeof key, (const uint8_t *)text,
                                          sizeof text - 1, &error));
        GOOD("w", twindex_writer_commit(writer, NULL, &error));
    }
    twindex_writer_free(writer);
    GOOD("w", twindex_index_compact(index, &error));
    GOOD("w", twindex_index_refresh(index, NULL, &error));
    if (GOOD("w", twindex_index_snapshot(index, &snapshot, &error))) {
        printf("w ");
        print_keys("w", snapshot);
    }
    twindex_snapshot_free(snapshot);
}

static void answer(const char *path, const char *queries) {
    twindex_error *error;
    twindex_code code;
    twindex_index *index;
    twindex_snapshot *snapshot;
    twindex_findings *findings;
    if (!GOOD("-", twindex_index_open(path, &index, &error))) return;
    if (GOOD("-", twindex_index_snapshot(index, &snapshot, &error))) answer_queries(index, snapshot, queries);
    twindex_snapshot_free(snapshot);
    if (GOOD("v -", twindex_index_verify(index, &findings, &error)))
        printf("v %zu\n", twindex_findings_problems(findings));
    twindex_findings_free(findings);
    write_index(index);
    twindex_index_free(index);
}

int main(void) {
    static char line[LINE];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *queries = strchr(line, '\t');
        if (queries == NULL) return 2;
        *queries++ = 0;
        queries[strcspn(queries, "\n")] = 0;
        answer(line, queries);
        puts(".");
        fflush(stdout);
    }
    return 0;
}
