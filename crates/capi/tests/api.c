/* Tests the C interface as a C program uses it. Usage: api DIRECTORY, with an empty directory. scripts/capi test runs it
 * under AddressSanitizer and valgrind, which also report leaks and out-of-bounds accesses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <twindex.h>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);    \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

/* Expects success; otherwise prints the error message and exits. */
#define OK(call)                                                                         \
    do {                                                                                 \
        if ((call) != TWINDEX_CODE_OK) {                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                \
                    twindex_error_message(error));                                       \
            exit(1);                                                                     \
        }                                                                                \
        CHECK(error == NULL);                                                            \
    } while (0)

/* Expects this error code, and a message that contains these words. */
#define FAILS(expected, words, call)                                                     \
    do {                                                                                 \
        CHECK((call) == (expected));                                                     \
        CHECK(error != NULL && twindex_error_code(error) == (expected));                 \
        if (strstr(twindex_error_message(error), words) == NULL) {                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, twindex_error_message(error)); \
            exit(1);                                                                     \
        }                                                                                \
        twindex_error_free(error);                                                       \
        error = NULL;                                                                    \
    } while (0)

#define BYTES(text) (const uint8_t *)(text), strlen(text)

static const char *ROSE = "a rose is a rose is a rose is a rose";
static const char *ROSES = "A rose is a rose is a rose is a rose!";
static const char *OTHER = "entirely different words about the sea and its tides";

static char path[4096];

static const char *at(const char *directory, const char *name) {
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static int is_key(const twindex_hits *hits, size_t number, const char *key) {
    size_t len;
    const uint8_t *found = twindex_hits_key(hits, number, &len);
    return found != NULL && len == strlen(key) && memcmp(found, key, len) == 0;
}

static void errors(const char *directory) {
    twindex_error *error = NULL;
    twindex_index *index = (twindex_index *)1;
    FAILS(TWINDEX_CODE_NOT_AN_INDEX, "none.twx", twindex_index_open(at(directory, "none.twx"), &index, &error));
    CHECK(index == NULL);
    CHECK(twindex_index_open(path, &index, NULL) == TWINDEX_CODE_NOT_AN_INDEX);
    FAILS(TWINDEX_CODE_INVALID, "path is null", twindex_index_open(NULL, &index, &error));
    FAILS(TWINDEX_CODE_INVALID, "no place for the result", twindex_index_open(path, NULL, &error));
    FAILS(TWINDEX_CODE_INVALID, "index is null", twindex_index_refresh(NULL, NULL, &error));
    FAILS(TWINDEX_CODE_INVALID, "writer is null", twindex_writer_commit(NULL, NULL, &error));
    FAILS(TWINDEX_CODE_INVALID, "params is null", twindex_index_create(path, NULL, &index, &error));

    twindex_params *params = twindex_params_new();
    OK(twindex_params_words(params, 200, &error));
    OK(twindex_params_simhash(params, 3, &error));
    FAILS(TWINDEX_CODE_INVALID, "width", twindex_index_create(path, params, &index, &error));
    FAILS(TWINDEX_CODE_INVALID, "lsh-20x6", twindex_params_preset(params, "unknown", &error));
    FAILS(TWINDEX_CODE_INVALID, "near", twindex_params_near(params, 0.0, -1, &error));
    twindex_params_free(params);
    FAILS(TWINDEX_CODE_INVALID, "", twindex_params_parse("key=bytes\n", &params, &error));
    CHECK(params == NULL);

    /* Null handles may be freed, and are empty. */
    twindex_error_free(NULL);
    twindex_params_free(NULL);
    twindex_index_free(NULL);
    twindex_snapshot_free(NULL);
    twindex_sketcher_free(NULL);
    twindex_sketch_free(NULL);
    twindex_writer_free(NULL);
    twindex_hits_free(NULL);
    twindex_keys_free(NULL);
    twindex_record_free(NULL);
    twindex_findings_free(NULL);
    CHECK(twindex_hits_len(NULL) == 0 && twindex_hits_key(NULL, 0, NULL) == NULL);
    CHECK(twindex_error_message(NULL)[0] == 0);
}

/* Returns whether a new index with these parameters stores that distance makes no documents near. */
static bool ignores_distance(const char *where, const twindex_params *params) {
    twindex_error *error = NULL;
    twindex_index *index;
    twindex_params *stored;
    OK(twindex_index_create(where, params, &index, &error));
    OK(twindex_index_params(index, &stored, &error));
    bool ignores = strstr(twindex_params_text(stored), "\nnear-within=none\n") != NULL;
    twindex_params_free(stored);
    twindex_index_free(index);
    return ignores;
}

/* With MinHash features, a distance makes documents near only if it is given. */
static void near_by_default(const char *directory) {
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    OK(twindex_params_simhash(params, 3, &error));
    CHECK(!ignores_distance(at(directory, "near-1.twx"), params));
    OK(twindex_params_preset(params, "lsh-20x6", &error));
    CHECK(ignores_distance(at(directory, "near-2.twx"), params));
    OK(twindex_params_near(params, 0.8, 3, &error));
    CHECK(!ignores_distance(at(directory, "near-3.twx"), params));
    twindex_params_free(params);
}

static twindex_index *make(const char *where) {
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    OK(twindex_params_words(params, 2, &error));
    OK(twindex_params_simhash(params, 3, &error));
    OK(twindex_params_minhash(params, 20, 6, &error));
    OK(twindex_params_sets(params, &error));
    OK(twindex_params_marks(params, &error));
    OK(twindex_params_values(params, &error));
    OK(twindex_params_expire_after(params, 100, &error));
    OK(twindex_params_near(params, 0.7, -1, &error));
    twindex_index *index;
    OK(twindex_index_create(where, params, &index, &error));
    FAILS(TWINDEX_CODE_ALREADY_EXISTS, "already exists", twindex_index_create(where, params, (twindex_index *[]){NULL}, &error));
    twindex_params_free(params);

    OK(twindex_index_params(index, &params, &error));
    CHECK(strstr(twindex_params_text(params), "width=2\n") != NULL);
    FAILS(TWINDEX_CODE_INVALID, "complete", twindex_params_words(params, 3, &error));
    twindex_params *again;
    OK(twindex_params_parse(twindex_params_text(params), &again, &error));
    CHECK(strcmp(twindex_params_text(params), twindex_params_text(again)) == 0);
    twindex_index *same;
    OK(twindex_index_open_or_create(where, again, &same, &error));
    twindex_index_free(same);
    twindex_params_free(again);
    twindex_params_free(params);
    return index;
}

static void documents(const char *where) {
    twindex_error *error = NULL;
    twindex_index *index = make(where);
    twindex_sketcher *sketcher;
    OK(twindex_index_sketcher(index, &sketcher, &error));
    twindex_sketch *rose, *roses, *none;
    OK(twindex_sketcher_sketch(sketcher, BYTES(ROSE), &rose, &error));
    OK(twindex_sketcher_sketch(sketcher, BYTES(ROSES), &roses, &error));
    OK(twindex_sketcher_sketch(sketcher, NULL, 0, &none, &error));
    CHECK(!twindex_sketch_is_empty(rose) && twindex_sketch_is_empty(none));
    uint64_t fingerprint, other;
    CHECK(twindex_sketch_fingerprint(rose, &fingerprint) && twindex_sketch_fingerprint(roses, &other));
    CHECK(fingerprint == other && !twindex_sketch_fingerprint(none, NULL));
    size_t len;
    CHECK(twindex_sketch_set(rose, &len) != NULL && len == 3); /* a rose, rose is, is a */

    twindex_writer *writer, *second;
    OK(twindex_index_writer(index, &writer, &error));
    FAILS(TWINDEX_CODE_LOCKED, "one writer", twindex_index_writer(index, &second, &error));
    CHECK(second == NULL);

    uint64_t stamp = 1000, late = 900;
    twindex_document document = TWINDEX_DOCUMENT_INIT;
    document.stamp = &stamp;
    FAILS(TWINDEX_CODE_INVALID, "a fingerprint or a code", twindex_writer_put(writer, BYTES("a"), &document, &error));
    document.sketch = rose;
    document.value = (const uint8_t *)"page 7";
    document.value_len = 6;
    twindex_document wrong = document;
    wrong.struct_size = 8;
    FAILS(TWINDEX_CODE_INVALID, "struct_size", twindex_writer_put(writer, BYTES("a"), &wrong, &error));
    FAILS(TWINDEX_CODE_INVALID, "document is null", twindex_writer_put(writer, BYTES("a"), NULL, &error));
    OK(twindex_writer_put(writer, BYTES("a"), &document, &error));
    bool contained;
    OK(twindex_writer_contains(writer, BYTES("a"), &contained, &error));
    CHECK(contained);

    twindex_admitted admitted;
    twindex_hits *hits;
    document.sketch = roses;
    OK(twindex_writer_admit(writer, BYTES("b"), &document, &admitted, &hits, &error));
    CHECK(admitted == TWINDEX_ADMITTED_DUPLICATE && twindex_hits_len(hits) == 1 && is_key(hits, 0, "a"));
    CHECK(twindex_hits_resemblance(hits, 0) == 1.0);
    CHECK(twindex_hits_key(hits, 1, &len) == NULL && len == 0 && twindex_hits_resemblance(hits, 1) == -1.0);
    twindex_hits_free(hits);
    OK(twindex_writer_admit(writer, BYTES("b"), &document, &admitted, NULL, &error));
    CHECK(admitted == TWINDEX_ADMITTED_KNOWN);
    document.stamp = &late;
    OK(twindex_writer_admit(writer, BYTES("c"), &document, &admitted, &hits, &error));
    CHECK(admitted == TWINDEX_ADMITTED_EXPIRED && hits == NULL);
    FAILS(TWINDEX_CODE_INVALID, "stamp", twindex_writer_put_text(writer, BYTES("c"), BYTES(OTHER), &error));

    twindex_snapshot *before, *after;
    OK(twindex_index_snapshot(index, &before, &error));
    uint64_t commit;
    OK(twindex_writer_commit_with(writer, BYTES("offset 17"), &commit, &error));
    OK(twindex_index_snapshot(index, &after, &error));
    CHECK(twindex_snapshot_documents(before) == 0 && twindex_snapshot_documents(after) == 2);
    CHECK(twindex_snapshot_commit(after) == commit);
    const uint8_t *payload = twindex_snapshot_payload(after, &len);
    CHECK(len == 9 && memcmp(payload, "offset 17", len) == 0);
    CHECK(twindex_snapshot_payload(before, &len) == NULL && len == 0);

    OK(twindex_snapshot_near(after, rose, SIZE_MAX, &hits, &error));
    CHECK(twindex_hits_len(hits) == 2 && is_key(hits, 0, "a") && is_key(hits, 1, "b"));
    CHECK(twindex_hits_distance(hits, 0) == 0);
    twindex_hits_free(hits);
    OK(twindex_snapshot_resembling(after, rose, 0.9, TWINDEX_QUERY_UNMARKED, 10, &hits, &error));
    CHECK(twindex_hits_len(hits) == 1 && is_key(hits, 0, "a"));
    twindex_hits_free(hits);
    OK(twindex_snapshot_within(after, fingerprint, 3, 1, &hits, &error));
    CHECK(twindex_hits_len(hits) == 1 && twindex_hits_has_more(hits));
    twindex_hits_free(hits);
    FAILS(TWINDEX_CODE_INVALID, "flags", twindex_snapshot_resembling(after, rose, 0.9, 64, 10, &hits, &error));
    FAILS(TWINDEX_CODE_INVALID, "", twindex_snapshot_resembling(after, rose, 7.0, 0, 10, &hits, &error));
    CHECK(hits == NULL);

    twindex_record *record;
    OK(twindex_snapshot_get(after, BYTES("b"), &record, &error));
    const uint8_t *value = twindex_record_value(record, &len);
    CHECK(len == 6 && memcmp(value, "page 7", len) == 0 && twindex_record_is_duplicate(record));
    CHECK(twindex_record_fingerprint(record, &other) && other == fingerprint);
    CHECK(twindex_record_stamp(record, &other) && other == 1000 && !twindex_record_priority(record, NULL));
    twindex_record_free(record);
    OK(twindex_snapshot_get(after, BYTES("none"), &record, &error));
    CHECK(record == NULL);

    OK(twindex_writer_delete(writer, BYTES("a"), &error));
    OK(twindex_writer_durability(writer, TWINDEX_DURABILITY_BATCH, &error));
    FAILS(TWINDEX_CODE_INVALID, "durability", twindex_writer_durability(writer, 9, &error));
    OK(twindex_writer_commit(writer, NULL, &error));
    OK(twindex_writer_sync(writer, &error));
    twindex_writer_free(writer);

    /* The older snapshot still has both keys. Tests iteration over keys in order, without and with a prefix. */
    twindex_keys *keys;
    const uint8_t *key;
    OK(twindex_snapshot_keys(after, NULL, 0, &keys, &error));
    OK(twindex_keys_next(keys, &key, &len, &error));
    CHECK(len == 1 && *key == 'a');
    OK(twindex_keys_next(keys, &key, &len, &error));
    CHECK(len == 1 && *key == 'b');
    OK(twindex_keys_next(keys, &key, &len, &error));
    CHECK(key == NULL && len == 0);
    twindex_keys_free(keys);
    twindex_snapshot_free(before);
    twindex_snapshot_free(after);

    twindex_metrics metrics = TWINDEX_METRICS_INIT;
    OK(twindex_index_metrics(index, &metrics, &error));
    CHECK(metrics.documents == 1 && metrics.struct_size == sizeof metrics);
    metrics.struct_size = 1;
    FAILS(TWINDEX_CODE_INVALID, "struct_size", twindex_index_metrics(index, &metrics, &error));
    uint64_t removed;
    OK(twindex_index_compact(index, &error));
    OK(twindex_index_gc(index, &removed, &error));
    bool changed;
    OK(twindex_index_refresh(index, &changed, &error));
    twindex_findings *findings;
    OK(twindex_index_verify(index, &findings, &error));
    CHECK(twindex_findings_problems(findings) == 0 && twindex_findings_problem(findings, 0) == NULL);
    twindex_findings_free(findings);
    twindex_sketch_free(rose);
    twindex_sketch_free(roses);
    twindex_sketch_free(none);
    twindex_sketcher_free(sketcher);
    twindex_index_free(index);
}

static void numbers(const char *where) {
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    OK(twindex_params_u64_keys(params, &error));
    OK(twindex_params_simhash(params, 3, &error));
    twindex_index *index;
    OK(twindex_index_open_or_create(where, params, &index, &error));
    twindex_params_free(params);
    twindex_writer *writer;
    OK(twindex_index_writer(index, &writer, &error));
    for (uint64_t key = 1; key <= 3; key++) {
        uint64_t fingerprint = key;
        twindex_document document = TWINDEX_DOCUMENT_INIT;
        document.fingerprint = &fingerprint;
        OK(twindex_writer_put(writer, (const uint8_t *)&key, sizeof key, &document, &error));
        FAILS(TWINDEX_CODE_INVALID, "length 8", twindex_writer_put(writer, (const uint8_t *)&key, 4, &document, &error));
    }
    OK(twindex_writer_commit(writer, NULL, &error));
    twindex_writer_free(writer);
    twindex_snapshot *snapshot;
    OK(twindex_index_snapshot(index, &snapshot, &error));
    twindex_index_free(index); /* the snapshot remains valid */
    twindex_hits *hits;
    OK(twindex_snapshot_within(snapshot, 1, 1, 10, &hits, &error));
    CHECK(twindex_hits_len(hits) == 2); /* keys 1 and 3 */
    uint64_t key;
    size_t len;
    const uint8_t *bytes = twindex_hits_key(hits, 1, &len);
    CHECK(len == sizeof key);
    memcpy(&key, bytes, sizeof key);
    CHECK(key == 3 && twindex_hits_distance(hits, 1) == 1 && twindex_hits_resemblance(hits, 1) == -1.0);
    twindex_hits_free(hits);
    twindex_snapshot_free(snapshot);
}

#define CODES 300

static uint64_t state = 1;

static uint64_t random_word(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static uint32_t code_distance(const uint8_t *a, const uint8_t *b, size_t len) {
    uint32_t bits = 0;
    for (size_t i = 0; i < len; i++) {
        for (uint8_t differ = a[i] ^ b[i]; differ != 0; differ &= (uint8_t)(differ - 1)) bits++;
    }
    return bits;
}

/* Codes of `len` bytes: random ones, near copies of the one before, and equal ones. The hits equal a comparison of all. */
static void codes(const char *directory, size_t len) {
    static char where[4096];
    static uint8_t all[CODES * 64];
    static uint64_t keys[CODES], key_offsets[CODES + 1];
    snprintf(where, sizeof where, "%s/codes-%zu.twx", directory, len);
    uint32_t within = (uint32_t)len;
    for (size_t i = 0; i < CODES * len; i++) all[i] = (uint8_t)random_word();
    for (size_t i = 1; i < CODES; i++) {
        uint8_t *code = all + i * len;
        if (random_word() % 3 == 0) continue;
        memcpy(code, code - len, len);
        for (uint64_t flips = random_word() % 3 * len / 2; flips > 0; flips--) code[random_word() % len] ^= (uint8_t)(1 << random_word() % 8);
    }
    for (size_t i = 0; i < CODES; i++) keys[i] = i, key_offsets[i + 1] = 8 * (i + 1);
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    OK(twindex_params_u64_keys(params, &error));
    OK(twindex_params_codes(params, (uint16_t)(8 * len), (uint16_t)within, &error));
    twindex_index *index;
    OK(twindex_index_create(where, params, &index, &error));
    twindex_params_free(params);
    twindex_writer *writer;
    OK(twindex_index_writer(index, &writer, &error));
    twindex_document document = TWINDEX_DOCUMENT_INIT;
    document.code = all, document.code_len = len;
    OK(twindex_writer_put(writer, (const uint8_t *)&keys[0], 8, &document, &error));
    document.code_len = len - 1;
    FAILS(TWINDEX_CODE_INVALID, "expected 8, 16, 24", twindex_writer_put(writer, (const uint8_t *)&keys[0], 8, &document, &error));
    document.code_len = len, document.fingerprint = &keys[0];
    FAILS(TWINDEX_CODE_INVALID, "one of them", twindex_writer_put(writer, (const uint8_t *)&keys[0], 8, &document, &error));
    document.fingerprint = NULL, document.code = all + len;
    twindex_admitted admitted;
    twindex_hits *hits;
    OK(twindex_writer_admit(writer, (const uint8_t *)&keys[1], 8, &document, &admitted, &hits, &error));
    uint32_t first = code_distance(all, all + len, len);
    CHECK((admitted == TWINDEX_ADMITTED_DUPLICATE) == (first <= within));
    CHECK(hits == NULL || twindex_hits_distance(hits, 0) == (int32_t)first);
    twindex_hits_free(hits);
    twindex_documents documents = TWINDEX_DOCUMENTS_INIT;
    documents.count = CODES, documents.keys = (const uint8_t *)keys, documents.key_offsets = key_offsets;
    documents.codes = all, documents.code_len = 7;
    FAILS(TWINDEX_CODE_INVALID, "expected 8, 16, 24", twindex_writer_put_many(writer, &documents, NULL, &error));
    documents.code_len = len;
    OK(twindex_writer_put_many(writer, &documents, NULL, &error));
    OK(twindex_writer_commit(writer, NULL, &error));
    twindex_writer_free(writer);
    twindex_snapshot *snapshot;
    OK(twindex_index_snapshot(index, &snapshot, &error));
    twindex_batch *batch;
    twindex_arrays arrays = TWINDEX_ARRAYS_INIT;
    OK(twindex_snapshot_codes_within(snapshot, all, len, CODES, within, SIZE_MAX, 2, &batch, &error));
    OK(twindex_batch_arrays(batch, &arrays, &error));
    CHECK(arrays.items == CODES);
    for (size_t i = 0; i < CODES; i++) {
        uint64_t near = 0;
        for (size_t j = 0; j < CODES; j++) near += code_distance(all + i * len, all + j * len, len) <= within;
        CHECK(arrays.starts[i + 1] - arrays.starts[i] == near);
        if (i % 20 == 0) {
            OK(twindex_snapshot_code_within(snapshot, all + i * len, len, within, CODES, &hits, &error));
            CHECK(twindex_hits_len(hits) == near);
        }
        for (uint64_t hit = arrays.starts[i], before = 0; hit < arrays.starts[i + 1]; hit++) {
            uint64_t key, alone;
            size_t key_len;
            memcpy(&key, arrays.bytes + arrays.offsets[hit], sizeof key);
            uint32_t distance = code_distance(all + i * len, all + key * len, len);
            uint64_t order = (uint64_t)distance << 32 | (key + 1);
            CHECK(arrays.distances[hit] == (int32_t)distance && order > before);
            before = order;
            if (i % 20 == 0) {
                memcpy(&alone, twindex_hits_key(hits, hit - arrays.starts[i], &key_len), sizeof alone);
                CHECK(alone == key && twindex_hits_distance(hits, hit - arrays.starts[i]) == (int32_t)distance);
            }
        }
        if (i % 20 == 0) twindex_hits_free(hits);
    }
    twindex_batch_free(batch);
    FAILS(TWINDEX_CODE_INVALID, "bits apart", twindex_snapshot_code_within(snapshot, all, len, 513, 1, &hits, &error));
    size_t other = len == 8 ? 16 : 8;
    FAILS(TWINDEX_CODE_INVALID, "this one has", twindex_snapshot_code_within(snapshot, all, other, 3, 1, &hits, &error));
    FAILS(TWINDEX_CODE_INVALID, "found 0", twindex_snapshot_codes_within(snapshot, NULL, 0, 1, 3, 1, 0, &batch, &error));
    FAILS(TWINDEX_CODE_INVALID, "codes", twindex_snapshot_codes_within(snapshot, NULL, len, 1, 3, 1, 0, &batch, &error));
    FAILS(TWINDEX_CODE_INVALID, "codes", twindex_snapshot_codes_within(snapshot, all, 64, SIZE_MAX / 32, 3, 1, 0, &batch, &error));
    twindex_record *record;
    size_t code_len;
    OK(twindex_snapshot_get(snapshot, (const uint8_t *)&keys[7], 8, &record, &error));
    const uint8_t *code = twindex_record_code(record, &code_len);
    CHECK(code_len == len && memcmp(code, all + 7 * len, len) == 0 && !twindex_record_fingerprint(record, NULL));
    twindex_record_free(record);
    keys[1] = CODES; /* no such document */
    OK(twindex_snapshot_get_many(snapshot, (const uint8_t *)keys, key_offsets, 4, 0, &batch, &error));
    OK(twindex_batch_arrays(batch, &arrays, &error));
    CHECK(arrays.entries == 3 && arrays.code_len == len && arrays.flags[2] == TWINDEX_HAS_FINGERPRINT);
    CHECK(memcmp(arrays.document_codes, all, len) == 0 && memcmp(arrays.document_codes + len, all + 2 * len, 2 * len) == 0);
    twindex_batch_free(batch);
    twindex_snapshot_free(snapshot);
    twindex_index_free(index);
}

/* Simhashes of 128 bits, also of a text without words. */
static void long_simhashes(const char *directory) {
    static char where[4096];
    snprintf(where, sizeof where, "%s/simhashes.twx", directory);
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    OK(twindex_params_set(params, "simhash_bits", "128", &error));
    OK(twindex_params_set(params, "near", "within:20", &error));
    twindex_index *index;
    OK(twindex_index_create(where, params, &index, &error));
    twindex_params_free(params);
    twindex_sketcher *sketcher;
    OK(twindex_index_sketcher(index, &sketcher, &error));
    twindex_writer *writer;
    OK(twindex_index_writer(index, &writer, &error));
    const char *texts[] = {"...", "one two three four five six seven", "!", "one two three four five six seven"};
    for (size_t i = 0; i < 4; i++) {
        twindex_sketch *sketch;
        OK(twindex_sketcher_sketch(sketcher, BYTES(texts[i]), &sketch, &error));
        twindex_document document = TWINDEX_DOCUMENT_INIT;
        document.sketch = sketch;
        OK(twindex_writer_put(writer, (const uint8_t *)"abcd" + i, 1, &document, &error));
        twindex_sketch_free(sketch);
    }
    OK(twindex_writer_commit(writer, NULL, &error));
    twindex_writer_free(writer);
    twindex_sketcher_free(sketcher);
    twindex_snapshot *snapshot;
    OK(twindex_index_snapshot(index, &snapshot, &error));
    const uint64_t key_offsets[] = {0, 1, 2, 3, 4};
    twindex_batch *batch;
    OK(twindex_snapshot_get_many(snapshot, (const uint8_t *)"abcd", key_offsets, 4, 0, &batch, &error));
    twindex_arrays arrays = TWINDEX_ARRAYS_INIT;
    OK(twindex_batch_arrays(batch, &arrays, &error));
    const uint8_t *codes = arrays.document_codes, none[16] = {0};
    CHECK(arrays.entries == 4 && arrays.code_len == 16);
    for (size_t i = 0; i < 4; i++) CHECK(arrays.flags[i] == (i % 2 ? TWINDEX_HAS_FINGERPRINT : 0));
    CHECK(memcmp(codes, none, 16) == 0 && memcmp(codes + 32, none, 16) == 0 && memcmp(codes + 16, none, 16) != 0);
    CHECK(memcmp(codes + 16, codes + 48, 16) == 0);
    twindex_hits *hits;
    OK(twindex_snapshot_code_within(snapshot, codes + 16, 16, 128, 9, &hits, &error));
    CHECK(twindex_hits_len(hits) == 2 && twindex_hits_distance(hits, 1) == 0);
    twindex_hits_free(hits);
    twindex_batch_free(batch);
    twindex_snapshot_free(snapshot);
    twindex_index_free(index);
}

static twindex_idf *count(const twindex_params *params, const char *const *texts, size_t len) {
    twindex_error *error = NULL;
    twindex_idf_counter *counter;
    OK(twindex_idf_counter_new(params, 1, 1000, &counter, &error));
    for (size_t i = 0; i < len; i++) {
        OK(twindex_idf_counter_add(counter, BYTES(texts[i]), &error));
    }
    OK(twindex_idf_counter_add(counter, NULL, 0, &error)); /* without shingles, so not counted */
    twindex_idf *idf, *second = (twindex_idf *)1;
    OK(twindex_idf_counter_finish(counter, &idf, &error));
    FAILS(TWINDEX_CODE_INVALID, "take a new counter", twindex_idf_counter_add(counter, BYTES("the"), &error));
    FAILS(TWINDEX_CODE_INVALID, "take a new counter", twindex_idf_counter_finish(counter, &second, &error));
    CHECK(second == NULL && twindex_idf_documents(idf) == len);
    twindex_idf_counter_free(counter);
    return idf;
}

/* Returns the resemblance of the only hit for a text that this sketcher sketched. */
static double resemblance_of_one(const twindex_index *index, const twindex_sketcher *sketcher, const char *text) {
    twindex_error *error = NULL;
    twindex_snapshot *snapshot;
    twindex_sketch *sketch;
    twindex_hits *hits;
    OK(twindex_index_snapshot(index, &snapshot, &error));
    OK(twindex_sketcher_sketch(sketcher, BYTES(text), &sketch, &error));
    OK(twindex_snapshot_resembling(snapshot, sketch, 0.1, 0, 10, &hits, &error));
    CHECK(twindex_hits_len(hits) == 1);
    double resemblance = twindex_hits_resemblance(hits, 0);
    twindex_hits_free(hits);
    twindex_sketch_free(sketch);
    twindex_snapshot_free(snapshot);
    return resemblance;
}

static int is_about(double found, double expected) {
    return found > expected - 1e-9 && found < expected + 1e-9;
}

/* Tests weights from a table: "the" is in all three texts and has weight 1, their other words 2, unknown words 3. */
static void weights(const char *directory) {
    twindex_error *error = NULL;
    static const char *const texts[] = {"the sea", "the tide", "the moon"};
    twindex_params *params = twindex_params_new();
    OK(twindex_params_words(params, 1, &error));
    twindex_idf *idf = count(params, texts, 3), *other = count(params, texts, 2), *again = NULL;
    CHECK(twindex_idf_len(idf) == 4 && strlen(twindex_idf_digest(idf)) == 32);
    CHECK(strcmp(twindex_idf_digest(idf), twindex_idf_digest(other)) != 0);

    OK(twindex_idf_save(idf, at(directory, "words.idf"), false, &error));
    FAILS(TWINDEX_CODE_IO, "words.idf", twindex_idf_save(idf, path, false, &error));
    OK(twindex_idf_save(idf, path, true, &error));
    OK(twindex_idf_open(path, &again, &error));
    CHECK(strcmp(twindex_idf_digest(idf), twindex_idf_digest(again)) == 0);
    twindex_idf_free(again);
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL && fseek(file, 90, SEEK_SET) == 0 && fputc('~', file) != EOF && fclose(file) == 0);
    FAILS(TWINDEX_CODE_CORRUPT, "words.idf", twindex_idf_open(path, &again, &error));
    CHECK(again == NULL);
    FAILS(TWINDEX_CODE_IO, "none.idf", twindex_idf_open(at(directory, "none.idf"), &again, &error));
    FAILS(TWINDEX_CODE_INVALID, "idf is null", twindex_idf_save(NULL, path, true, &error));
    FAILS(TWINDEX_CODE_INVALID, "counter is null", twindex_idf_counter_add(NULL, BYTES("the"), &error));
    FAILS(TWINDEX_CODE_INVALID, "params is null", twindex_idf_counter_new(NULL, 1, 1, (twindex_idf_counter *[]){NULL}, &error));
    twindex_idf_free(NULL);
    twindex_idf_counter_free(NULL);
    CHECK(twindex_idf_documents(NULL) == 0 && twindex_idf_len(NULL) == 0 && twindex_idf_digest(NULL)[0] == 0);

    OK(twindex_params_minhash(params, 20, 6, &error));
    OK(twindex_params_sets(params, &error));
    OK(twindex_params_near(params, 0.1, -1, &error));
    FAILS(TWINDEX_CODE_INVALID, "idf is null", twindex_params_minhash_idf(params, NULL, 1.0, &error));
    FAILS(TWINDEX_CODE_INVALID, "1/256 to 2", twindex_params_minhash_idf(params, idf, 3.0, &error));
    OK(twindex_params_minhash_idf(params, idf, 1.0, &error));
    FAILS(TWINDEX_CODE_INVALID, "an index has one table", twindex_params_simhash_idf(params, 3, other, &error));
    twindex_index *index, *same;
    const char *where = at(directory, "weights.twx");
    OK(twindex_index_create(where, params, &index, &error));
    OK(twindex_index_open_or_create(where, params, &same, &error));
    twindex_index_free(same);
    twindex_writer *writer;
    OK(twindex_index_writer(index, &writer, &error));
    OK(twindex_writer_put_text(writer, BYTES("a"), BYTES("the sea"), &error));
    OK(twindex_writer_commit(writer, NULL, &error));
    twindex_writer_free(writer);
    twindex_sketcher *sketcher;
    OK(twindex_index_sketcher(index, &sketcher, &error));
    CHECK(is_about(resemblance_of_one(index, sketcher, "the tide"), 1.0 / (1 + 2 + 2)));
    CHECK(is_about(resemblance_of_one(index, sketcher, "sea shells"), 2.0 / (1 + 2 + 3)));
    CHECK(is_about(resemblance_of_one(index, sketcher, "the sea sea"), 3.0 / (1 + 4)));
    twindex_sketcher_free(sketcher);
    twindex_params_free(params);

    /* Parameters that were parsed from text need their table. */
    twindex_params *read, *bare;
    OK(twindex_index_params(index, &read, &error));
    OK(twindex_params_parse(twindex_params_text(read), &bare, &error));
    OK(twindex_params_sketcher(read, &sketcher, &error));
    CHECK(is_about(resemblance_of_one(index, sketcher, "the tide"), 0.2));
    twindex_sketcher_free(sketcher);
    FAILS(TWINDEX_CODE_INVALID, "idf table", twindex_params_sketcher(bare, &sketcher, &error));
    CHECK(sketcher == NULL);
    FAILS(TWINDEX_CODE_INVALID, "idf table", twindex_index_open_or_create(where, bare, &same, &error));
    FAILS(TWINDEX_CODE_INVALID, twindex_idf_digest(other), twindex_params_idf(bare, other, &error));
    OK(twindex_params_idf(bare, idf, &error));
    OK(twindex_index_open_or_create(where, bare, &same, &error));
    twindex_index_free(same);
    twindex_params_free(bare);
    twindex_params_free(read);
    twindex_index_free(index);

    /* Weighted fingerprints, and weights without rounding, which exclude sets. */
    params = twindex_params_new();
    OK(twindex_params_simhash_idf(params, 3, idf, &error));
    OK(twindex_params_minhash(params, 20, 6, &error));
    OK(twindex_params_minhash_idf(params, idf, 0.0, &error));
    OK(twindex_index_create(at(directory, "darts.twx"), params, &index, &error));
    OK(twindex_index_params(index, &read, &error));
    CHECK(strstr(twindex_params_text(read), "width=1\n") != NULL);
    CHECK(strstr(twindex_params_text(read), "simhash=idf\n") != NULL);
    CHECK(strstr(twindex_params_text(read), "minhash=darts\n") != NULL);
    twindex_params_free(read);
    twindex_index_free(index);
    OK(twindex_params_sets(params, &error));
    FAILS(TWINDEX_CODE_INVALID, "fractions", twindex_index_create(at(directory, "sets.twx"), params, &index, &error));
    twindex_params_free(params);

    /* Weights from term frequencies only, without a table. */
    params = twindex_params_new();
    OK(twindex_params_words(params, 1, &error));
    OK(twindex_params_minhash(params, 20, 6, &error));
    OK(twindex_params_minhash_frequencies(params, &error));
    OK(twindex_params_sets(params, &error));
    OK(twindex_params_sketcher(params, &sketcher, &error));
    twindex_sketch *sketch;
    OK(twindex_sketcher_sketch(sketcher, BYTES("a rose is a rose"), &sketch, &error));
    size_t len;
    CHECK(twindex_sketch_set(sketch, &len) != NULL && len == 5);
    twindex_sketch_free(sketch);
    twindex_sketcher_free(sketcher);
    twindex_params_free(params);
    twindex_idf_free(other);
    twindex_idf_free(idf);
}

/* Returns the strings of a batch, joined by spaces. */
static const char *joined(const twindex_arrays *arrays) {
    static char text[1024];
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < arrays->entries; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i > 0 ? " " : "",
                                 (int)(arrays->offsets[i + 1] - arrays->offsets[i]),
                                 (const char *)arrays->bytes + arrays->offsets[i]);
    return text;
}

static int is_text(const uint8_t *bytes, size_t len, const char *text) {
    return bytes != NULL && len == strlen(text) && memcmp(bytes, text, len) == 0;
}

/* Counts the documents that it is called with, and ends after the second. */
static int32_t visit(void *data, const uint8_t *key, size_t key_len, const uint8_t *leader, size_t leader_len, uint32_t size) {
    CHECK(key != NULL && key_len == 1 && leader != NULL && leader_len == 1 && size == 2);
    return ++*(int *)data < 2;
}

static void verified(void *data, uint64_t bytes) { *(uint64_t *)data = bytes; }

/* Tests settings by name, calls for many, groups, ranges, reading through a writer, copies and salvage. */
static void rest(const char *directory) {
    static char where[4096], copy[4096], merged_at[4096];
    snprintf(where, sizeof where, "%s/rest.twx", directory);
    snprintf(copy, sizeof copy, "%s/copy.twx", directory);
    snprintf(merged_at, sizeof merged_at, "%s/merged.twx", directory);
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    FAILS(TWINDEX_CODE_INVALID, "there is no setting \"nearby\"", twindex_params_set(params, "nearby", "1", &error));
    FAILS(TWINDEX_CODE_INVALID, "words: expected 1 to 16", twindex_params_set(params, "words", "0", &error));
    FAILS(TWINDEX_CODE_INVALID, "name is null", twindex_params_set(params, NULL, "0", &error));
    OK(twindex_params_set(params, "words", "2", &error));
    OK(twindex_params_set(params, "near", "0.8", &error));
    OK(twindex_params_set(params, "sets", "kept", &error));
    OK(twindex_params_set(params, "priorities", "kept", &error));
    OK(twindex_params_set(params, "values", "kept", &error));
    uint16_t bands, rows;
    OK(twindex_banding_for_threshold(0.8, 0, &bands, &rows, &error));
    CHECK(bands == 20 && rows == 6 && twindex_banding_recall(bands, rows, 0.8, 1) > 0.99);
    twindex_index *index;
    OK(twindex_index_create(where, params, &index, &error));
    CHECK(strcmp(twindex_index_path(index), where) == 0 && twindex_index_access(index) == TWINDEX_ACCESS_MAP);
    twindex_idf *idf = (twindex_idf *)1;
    OK(twindex_index_idf(index, &idf, &error));
    CHECK(idf == NULL);
    twindex_writer *writer;
    OK(twindex_index_writer(index, &writer, &error));
    FAILS(TWINDEX_CODE_INVALID, "stalls: expected MILLISECONDS", twindex_writer_set(writer, "stalls", "x", &error));
    OK(twindex_writer_set(writer, "max_jump", "86400", &error));

    /* Keys a to d, and texts: the last is near the first, the third has a value that is too long. */
    static uint8_t values[70000];
    const uint64_t key_offsets[] = {0, 1, 2, 3, 4}, value_offsets[] = {0, 0, 0, 70000, 70000};
    const uint64_t priorities[] = {4, 3, 2, 1};
    char texts[512];
    uint64_t text_offsets[5] = {0};
    const char *each[] = {ROSE, OTHER, "a third text", ROSES};
    for (size_t i = 0; i < 4; i++) {
        memcpy(texts + text_offsets[i], each[i], strlen(each[i]));
        text_offsets[i + 1] = text_offsets[i] + strlen(each[i]);
    }
    twindex_documents documents = TWINDEX_DOCUMENTS_INIT;
    twindex_arrays arrays = TWINDEX_ARRAYS_INIT;
    twindex_batch *batch;
    documents.count = 4, documents.keys = (const uint8_t *)"abcd", documents.key_offsets = key_offsets;
    FAILS(TWINDEX_CODE_INVALID, "one of them", twindex_writer_admit_many(writer, &documents, &batch, &error));
    documents.texts = (const uint8_t *)texts, documents.text_offsets = text_offsets;
    documents.values = values, documents.value_offsets = value_offsets, documents.priorities = priorities;
    OK(twindex_writer_admit_many(writer, &documents, &batch, &error));
    OK(twindex_batch_arrays(batch, &arrays, &error));
    CHECK(arrays.items == 4 && arrays.codes[0] == TWINDEX_CODE_OK && arrays.codes[2] == TWINDEX_CODE_LIMIT);
    CHECK(strlen(twindex_batch_message(batch, 2)) > 0 && strlen(twindex_batch_message(batch, 0)) == 0);
    CHECK(arrays.admitted[1] == TWINDEX_ADMITTED_NEW && arrays.admitted[3] == TWINDEX_ADMITTED_DUPLICATE);
    CHECK(arrays.starts[3] == 0 && arrays.starts[4] == 1 && strcmp(joined(&arrays), "a") == 0);
    CHECK(is_about(arrays.resemblances[0], 1.0) && arrays.flags == NULL);
    twindex_batch_free(batch);
    FAILS(TWINDEX_CODE_LIMIT, "", twindex_writer_put_many(writer, &documents, NULL, &error));
    documents.struct_size = 8;
    FAILS(TWINDEX_CODE_INVALID, "struct_size of documents", twindex_writer_put_many(writer, &documents, NULL, &error));

    /* Reading through the writer, before the commit. */
    twindex_record *record;
    twindex_group *group;
    size_t len;
    OK(twindex_writer_get(writer, BYTES("d"), &record, &error));
    CHECK(record != NULL && twindex_record_set(record, &len) != NULL && len > 0);
    twindex_record_free(record);
    OK(twindex_writer_leader(writer, BYTES("a"), TWINDEX_GROUP_QUERIES, &group, &error));
    const uint8_t *leader = twindex_group_leader(group, &len);
    CHECK(is_text(leader, len, "d"));
    twindex_group_free(group);
    uint64_t commit;
    OK(twindex_writer_commit(writer, &commit, &error));

    /* Snapshots: ranges, many keys, records, near documents of many sketches, all options of a query. */
    twindex_snapshot *snapshot, *later;
    twindex_keys *keys;
    const uint8_t *key;
    OK(twindex_index_snapshot(index, &snapshot, &error));
    CHECK(twindex_snapshot_durable_commit(snapshot) == commit && twindex_snapshot_logged_documents(snapshot) == 3);
    CHECK(!twindex_snapshot_now(snapshot, NULL) && twindex_snapshot_segment(snapshot, 0) == NULL);
    OK(twindex_snapshot_range(snapshot, BYTES("a"), BYTES("d"), TWINDEX_RANGE_AFTER | TWINDEX_RANGE_THROUGH, &keys, &error));
    OK(twindex_keys_previous(keys, &key, &len, &error));
    CHECK(is_text(key, len, "d"));
    OK(twindex_keys_next_many(keys, 10, &batch, &error));
    OK(twindex_batch_arrays(batch, &arrays, &error));
    CHECK(strcmp(joined(&arrays), "b") == 0);
    twindex_batch_free(batch);
    twindex_keys_free(keys);
    OK(twindex_snapshot_get_many(snapshot, (const uint8_t *)"abcd", key_offsets, 4, 0, &batch, &error));
    OK(twindex_batch_arrays(batch, &arrays, &error));
    CHECK(arrays.items == 4 && arrays.entries == 3 && arrays.priorities[2] == 1);
    CHECK(arrays.flags[0] == (TWINDEX_HAS_VALUE | TWINDEX_HAS_PRIORITY));
    twindex_batch_free(batch);
    twindex_sketcher *sketcher;
    twindex_sketches *sketches;
    twindex_sketch *sketch;
    OK(twindex_index_sketcher(index, &sketcher, &error));
    OK(twindex_sketcher_sketch_many(sketcher, (const uint8_t *)texts, text_offsets, 4, 2, &sketches, &error));
    CHECK(twindex_sketches_len(sketches) == 4);
    OK(twindex_snapshot_near_many(snapshot, sketches, NULL, 0, &batch, &error));
    OK(twindex_batch_arrays(batch, &arrays, &error));
    CHECK(strcmp(joined(&arrays), "a d b a d") == 0 && arrays.starts[2] == 3);
    twindex_batch_free(batch);
    FAILS(TWINDEX_CODE_INVALID, "sketch 4", twindex_sketches_get(sketches, 4, &sketch, &error));
    OK(twindex_sketches_get(sketches, 0, &sketch, &error));
    CHECK(twindex_sketch_signature(sketch, &len) != NULL && len == 120);
    CHECK(twindex_sketch_features(sketch, &len) != NULL && len == 20);
    twindex_query query = TWINDEX_QUERY_INIT;
    twindex_hits *hits;
    uint64_t count;
    OK(twindex_snapshot_count(snapshot, sketch, &query, &count, &error));
    CHECK(count == 2);
    query.flags = TWINDEX_QUERY_ANY;
    OK(twindex_snapshot_query(snapshot, sketch, &query, &hits, &error));
    CHECK(twindex_hits_len(hits) == 1 && twindex_hits_unvisited(hits) == 0 && twindex_hits_query_in_hit(hits, 0) < 0);
    OK(twindex_hits_record(hits, 0, &record, &error));
    CHECK(record != NULL);
    twindex_record_free(record);
    twindex_hits_free(hits);
    query.flags = 1024;
    FAILS(TWINDEX_CODE_INVALID, "flags", twindex_snapshot_query(snapshot, sketch, &query, &hits, &error));
    twindex_cancel *cancel = twindex_cancel_new(-1);
    CHECK(!twindex_cancel_is_requested(cancel));
    twindex_cancel_request(cancel);
    query.flags = 0, query.cancel = cancel;
    FAILS(TWINDEX_CODE_CANCELLED, "cancelled", twindex_snapshot_query(snapshot, sketch, &query, &hits, &error));

    /* Groups. */
    OK(twindex_snapshot_group(snapshot, BYTES("a"), TWINDEX_GROUP_QUERIES, &group, &error));
    CHECK(twindex_group_size(group) == 2 && twindex_group_queries(group) > 0);
    key = twindex_group_member(group, 0, &len);
    CHECK(is_text(key, len, "a") && twindex_group_member(group, 2, &len) == NULL);
    twindex_group_free(group);
    FAILS(TWINDEX_CODE_UNDECIDED, "limit", twindex_snapshot_leader(snapshot, BYTES("a"), 0, &group, &error));
    OK(twindex_snapshot_membership(snapshot, BYTES("x"), 1, &group, &error));
    CHECK(group == NULL);
    twindex_groups *groups;
    uint32_t size;
    int visited = 0;
    FAILS(TWINDEX_CODE_CANCELLED, "", twindex_snapshot_groups(snapshot, directory, 1 << 26, 0, cancel, &groups, &error));
    OK(twindex_snapshot_groups(snapshot, directory, 1 << 26, 0, NULL, &groups, &error));
    CHECK(twindex_groups_count(groups) == 2 && twindex_groups_size(groups, 1, &size, &count) && size == 2 && count == 1);
    OK(twindex_groups_for_each(groups, 2, visit, &visited, &error));
    CHECK(visited == 2);
    OK(twindex_groups_leader(groups, BYTES("a"), &group, &error));
    leader = twindex_group_leader(group, &len);
    CHECK(is_text(leader, len, "d"));
    twindex_group_free(group);
    twindex_groups_free(groups);
    twindex_document document = TWINDEX_DOCUMENT_INIT;
    twindex_admitted admitted;
    document.sketch = sketch;
    OK(twindex_writer_admit_grouped(writer, BYTES("e"), &document, TWINDEX_GROUP_QUERIES, &admitted, &hits, &group, &error));
    CHECK(admitted == TWINDEX_ADMITTED_DUPLICATE && twindex_group_size(group) == 3);
    twindex_hits_free(hits);
    twindex_group_free(group);
    OK(twindex_writer_find_near(writer, &document, 10, &hits, &error));
    CHECK(twindex_hits_len(hits) == 3);
    FAILS(TWINDEX_CODE_INVALID, "twindex_writer_get", twindex_hits_record(hits, 0, &record, &error));
    twindex_hits_free(hits);
    OK(twindex_writer_delete_prefix(writer, BYTES("d"), &count, &error));
    CHECK(count == 1);
    OK(twindex_writer_commit(writer, NULL, &error));
    OK(twindex_index_snapshot(index, &later, &error));
    twindex_changes *changes;
    OK(twindex_snapshot_changed_leaders(later, snapshot, &changes, &error));
    CHECK(twindex_changes_len(changes) == 3);
    key = twindex_changes_before(changes, 0, &len);
    CHECK(is_text(key, len, "d"));
    key = twindex_changes_after(changes, 0, &len);
    CHECK(is_text(key, len, "a") && twindex_changes_after(changes, 1, &len) == NULL && twindex_changes_key(changes, 3, &len) == NULL);
    twindex_changes_free(changes);
    uint64_t high, low;
    OK(twindex_snapshot_uuid(later, &high, &low, &error));
    CHECK(high != 0 && low != 0);

    /* Work of the writer, copies, merges, segments, salvage. */
    bool done;
    OK(twindex_writer_put_text(writer, BYTES("f"), BYTES(OTHER), &error));
    OK(twindex_writer_rollback(writer, &error));
    OK(twindex_writer_flush(writer, &error));
    OK(twindex_writer_merge_step(writer, NULL, &done, &error));
    OK(twindex_writer_wait_for_merge(writer, &error));
    OK(twindex_writer_take_merge_failure(writer, &error));
    FAILS(TWINDEX_CODE_CANCELLED, "", twindex_writer_compact(writer, cancel, NULL, &error));
    OK(twindex_writer_compact(writer, NULL, &commit, &error));
    OK(twindex_writer_gc(writer, &count, &error));
    OK(twindex_index_copy_to(index, copy, &commit, &error));
    twindex_index *second;
    twindex_open options = TWINDEX_OPEN_INIT;
    options.access = TWINDEX_ACCESS_READ;
    OK(twindex_index_open_with(copy, &options, &second, &error));
    CHECK(twindex_index_access(second) == TWINDEX_ACCESS_READ);
    options.access = 9;
    twindex_index *none;
    FAILS(TWINDEX_CODE_INVALID, "access is 9", twindex_index_open_with(copy, &options, &none, &error));
    const twindex_index *both[] = {index, second};
    twindex_merged merged = TWINDEX_MERGED_INIT;
    OK(twindex_index_merge(merged_at, both, 2, TWINDEX_CONFLICT_REFUSE, 1 << 26, 0, &merged, &error));
    CHECK(merged.documents == 3 && merged.repeated == 3 && merged.conflicts == 0);
    twindex_snapshot_free(later);
    OK(twindex_index_snapshot(index, &later, &error));
    const char *segments[] = {twindex_snapshot_segment(later, 0)};
    CHECK(segments[0] != NULL);
    OK(twindex_index_adopt(at(directory, "adopted.twx"), params, segments, 1, &count, &error));
    CHECK(count == 3);
    OK(twindex_writer_ingest(writer, segments, 1, &count, &error));
    CHECK(count == 3);
    OK(twindex_writer_rollback(writer, &error));
    twindex_metrics metrics = TWINDEX_METRICS_INIT;
    OK(twindex_index_metrics(index, &metrics, &error));
    CHECK(metrics.commits.count > 0 && metrics.write_amplification >= 1.0);
    metrics.struct_size = offsetof(twindex_metrics, cached_bytes); /* as a program of version 2 */
    metrics.cached_bytes = 77;
    OK(twindex_index_metrics(index, &metrics, &error));
    CHECK(metrics.cached_bytes == 77 && metrics.documents == 3);
    twindex_findings *findings;
    uint64_t bytes = 0;
    OK(twindex_verify(copy, TWINDEX_ACCESS_READ, NULL, verified, &bytes, &findings, &error));
    CHECK(twindex_findings_problems(findings) == 0 && bytes > 0);
    twindex_findings_free(findings);
    twindex_salvaged *salvaged;
    OK(twindex_salvage(copy, at(directory, "salvaged.twx"), &salvaged, &error));
    CHECK(twindex_salvaged_is_whole(salvaged) && twindex_salvaged_documents(salvaged) == 3);
    CHECK(twindex_salvaged_lost(salvaged) == 0 && twindex_salvaged_problem(salvaged, 0) == NULL);
    twindex_salvaged_free(salvaged);
    OK(twindex_index_wait(second, 0, 1, &done, &error));
    CHECK(done);

    twindex_index_free(second);
    twindex_cancel_free(cancel);
    twindex_sketch_free(sketch);
    twindex_sketches_free(sketches);
    twindex_sketcher_free(sketcher);
    twindex_snapshot_free(later);
    twindex_snapshot_free(snapshot);
    twindex_writer_free(writer);
    twindex_index_free(index);
    twindex_params_free(params);
}

/* Tests several threads that share one writer and one index. */
enum { THREADS = 4, PAGES = 200 };
static twindex_index *shared_index;
static twindex_writer *shared_writer;

static void *work(void *argument) {
    twindex_error *error = NULL;
    int number = *(int *)argument;
    for (int page = 0; page < PAGES; page++) {
        char key[32], text[128];
        snprintf(key, sizeof key, "%d/%d", number, page);
        snprintf(text, sizeof text, "thread %d page %d with words %d that %d are its own %d", number, page, page * 7, page + 1, number * 1000 + page);
        OK(twindex_writer_put_text(shared_writer, BYTES(key), BYTES(text), &error));
        if (page % 50 == 0) {
            OK(twindex_writer_commit(shared_writer, NULL, &error));
            twindex_snapshot *snapshot;
            OK(twindex_index_snapshot(shared_index, &snapshot, &error));
            bool contained;
            OK(twindex_snapshot_contains(snapshot, BYTES(key), &contained, &error));
            CHECK(contained);
            twindex_snapshot_free(snapshot);
        }
    }
    return NULL;
}

static void threads(const char *where) {
    twindex_error *error = NULL;
    twindex_params *params = twindex_params_new();
    OK(twindex_params_preset(params, "lsh-20x6", &error));
    OK(twindex_index_create(where, params, &shared_index, &error));
    twindex_params_free(params);
    OK(twindex_index_writer(shared_index, &shared_writer, &error));
    OK(twindex_writer_durability(shared_writer, TWINDEX_DURABILITY_NONE, &error));
    pthread_t ids[THREADS];
    int thread_numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        thread_numbers[i] = i;
        CHECK(pthread_create(&ids[i], NULL, work, &thread_numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
    }
    OK(twindex_writer_commit(shared_writer, NULL, &error));
    twindex_snapshot *snapshot;
    OK(twindex_index_snapshot(shared_index, &snapshot, &error));
    CHECK(twindex_snapshot_documents(snapshot) == THREADS * PAGES);
    twindex_snapshot_free(snapshot);
    twindex_writer_free(shared_writer);
    twindex_index_free(shared_index);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(twindex_abi_version() == TWINDEX_ABI_VERSION && twindex_version()[0] != 0);
    errors(argv[1]);
    near_by_default(argv[1]);
    documents(at(argv[1], "documents.twx"));
    numbers(at(argv[1], "numbers.twx"));
    for (size_t len = 8; len <= 64; len += len < 32 ? 8 : 16) codes(argv[1], len);
    long_simhashes(argv[1]);
    weights(argv[1]);
    rest(argv[1]);
    threads(at(argv[1], "threads.twx"));
    puts("api: passed");
    return 0;
}
