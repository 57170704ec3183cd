/* The C interface of twindex, an index of near-duplicate documents. Made by cbindgen: see scripts/capi-header.
 *
 * Errors. Functions that can fail return a code, and take a place for an error as their last argument, which may be null.
 *   On failure it is set to an error that the caller frees; on success to null. Results are null, 0 or false on failure.
 * Ownership. Who receives a handle by a pointer to a handle, or as a return value, frees it, once, with the function of
 *   its type; null may be freed. Handles do not depend on each other: they may be freed in any order. Pointers to bytes
 *   and strings belong to the handle that they come from, and live as long, unless stated otherwise. Bytes that are
 *   passed in are read until the call returns and not kept.
 * Threads. All functions may be called on any thread. Handles may be shared: queries run at once, calls of one writer wait
 *   for each other. A handle may be freed only when no other call uses it, and no byte of it is needed any more.
 * Keys. Bytes, or for an index whose keys are numbers the address of a uint64_t and length 8.
 * Panics. A defect of the library is TWINDEX_CODE_PANICKED; a writer that had one refuses all further calls. Memory that
 *   cannot be had ends the process. Null handles are TWINDEX_CODE_INVALID; handles of another type, or freed ones, are not
 *   noticed.
 * Versions. A program that was compiled with this header runs with every later library of the same soname. Structures
 *   begin with their size, so that later versions can add fields.
 */

#ifndef TWINDEX_H
#define TWINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a structure holds before the caller fills it. */
#define TWINDEX_DOCUMENT_INIT { sizeof(twindex_document), 0, 0, 0, 0, 0, 0, 0 }
#define TWINDEX_METRICS_INIT { sizeof(twindex_metrics), 0, 0, 0, 0, 0, 0 }


// Version of this interface; it grows with each addition. A library of the same soname and an equal or higher version has
// all that a program compiled with this header needs.
#define TWINDEX_ABI_VERSION 2

// All documents that share a band are hits, at any resemblance.
#define TWINDEX_QUERY_UNVERIFIED 1

// Resemblance is estimated, though the index keeps sets.
#define TWINDEX_QUERY_ESTIMATED 2

// Documents with the mark of a duplicate are excluded.
#define TWINDEX_QUERY_UNMARKED 4

// A commit survives the machine, as at first.
#define TWINDEX_DURABILITY_SYNC 0

// A commit survives the process; `twindex_writer_sync` makes many of them survive the machine.
#define TWINDEX_DURABILITY_BATCH 1

// A commit may be held in memory until `twindex_writer_sync`.
#define TWINDEX_DURABILITY_NONE 2

// The result of a function. Numbers never change; later versions may add some.
typedef enum {
    // It is done.
    TWINDEX_CODE_OK = 0,
    // There is no index at this path.
    TWINDEX_CODE_NOT_AN_INDEX = 1,
    // Something exists at the path of an index that was to be created.
    TWINDEX_CODE_ALREADY_EXISTS = 2,
    // Another writer holds the index. Try again when it is done.
    TWINDEX_CODE_LOCKED = 3,
    // Written by a newer twindex, or not available on this platform.
    TWINDEX_CODE_UNSUPPORTED = 4,
    // Made with other parameters than those of the index.
    TWINDEX_CODE_PARAMS_MISMATCH = 5,
    // Bytes on disk are not what was written.
    TWINDEX_CODE_CORRUPT = 6,
    // The operating system refused.
    TWINDEX_CODE_IO = 7,
    // The caller asked for something that cannot be: a null handle, an option out of range.
    TWINDEX_CODE_INVALID = 8,
    // A limit of the format was reached; nothing was written.
    TWINDEX_CODE_LIMIT = 9,
    // The commit is done, but the writer stopped after it. Take a new writer.
    TWINDEX_CODE_AFTER_COMMIT = 10,
    // The disk has no space for a merge, which was not begun.
    TWINDEX_CODE_NO_SPACE = 11,
    // An earlier failure stopped this writer. Free it and take a new one.
    TWINDEX_CODE_POISONED = 12,
    // A defect of the library. The handle that was used must be freed; please report it.
    TWINDEX_CODE_PANICKED = 13,
    // An error for which this version has no code.
    TWINDEX_CODE_OTHER = 14,
} twindex_code;

// The result of `twindex_writer_admit`. Numbers never change.
typedef enum {
    // Near no other document; added.
    TWINDEX_ADMITTED_NEW = 0,
    // A document of this key existed, and no other is near; replaced.
    TWINDEX_ADMITTED_UPDATED = 1,
    // A document of this key existed, and another is near; replaced.
    TWINDEX_ADMITTED_KNOWN = 2,
    // Near another document; added, or left out after `twindex_writer_drop_duplicates`.
    TWINDEX_ADMITTED_DUPLICATE = 3,
    // Too old by its own stamp; not added.
    TWINDEX_ADMITTED_EXPIRED = 4,
} twindex_admitted;

// An error: its code and message. Free it with `twindex_error_free`.
typedef struct twindex_error twindex_error;

// The result of `twindex_index_verify`. Free it with `twindex_findings_free`.
typedef struct twindex_findings twindex_findings;

// Near documents, the nearest first. Free it with `twindex_hits_free`.
typedef struct twindex_hits twindex_hits;

// How many documents of a collection have each shingle, by which shingles are weighted. Free it with `twindex_idf_free`.
typedef struct twindex_idf twindex_idf;

// Counts texts for a table. Free it with `twindex_idf_counter_free`.
typedef struct twindex_idf_counter twindex_idf_counter;

// An open index. Snapshots, sketchers and writers that were made from it stay valid after `twindex_index_free`.
typedef struct twindex_index twindex_index;

// The keys of a snapshot, ascending. Free it with `twindex_keys_free`.
typedef struct twindex_keys twindex_keys;

// Parameters of an index: what it keeps and how text becomes numbers. Set choices, then create an index. Free them with
// `twindex_params_free`.
typedef struct twindex_params twindex_params;

// The stored record of a document. Free it with `twindex_record_free`.
typedef struct twindex_record twindex_record;

// The numbers of one text. Free it with `twindex_sketch_free`.
typedef struct twindex_sketch twindex_sketch;

// Makes sketches of texts. Any number of threads may use one at once.
typedef struct twindex_sketcher twindex_sketcher;

// An index at one commit; it never changes. Free it with `twindex_snapshot_free`.
typedef struct twindex_snapshot twindex_snapshot;

// The one writer of an index. Its calls wait for each other, whatever the thread. What it was given is invisible until a
// commit, and gone if it is freed before.
typedef struct twindex_writer twindex_writer;

// Numbers of an index. Begin with `TWINDEX_METRICS_INIT`.
typedef struct {
    // The size of this structure in the caller's program.
    size_t struct_size;
    // The last commit.
    uint64_t commit;
    // Live documents.
    uint64_t documents;
    // Live documents that are in no segment yet.
    uint64_t logged_documents;
    // Segments on disk.
    uint64_t segments;
    // Bytes of the memtable, and of the one that becomes a segment.
    uint64_t memtable_bytes;
    // Bytes of segments and logs.
    uint64_t disk_bytes;
} twindex_metrics;

// A document and all that an index can keep with it. Begin with `TWINDEX_DOCUMENT_INIT` and set a sketch or a fingerprint;
// null pointers leave the rest out.
typedef struct {
    // The size of this structure in the caller's program.
    size_t struct_size;
    // The sketch of its text, or null.
    const twindex_sketch *sketch;
    // Without a sketch: its fingerprint, for an index that keeps fingerprints only.
    const uint64_t *fingerprint;
    // The value, or null.
    const uint8_t *value;
    // Bytes of the value.
    size_t value_len;
    // The stamp, or null.
    const uint64_t *stamp;
    // The priority, or null.
    const uint64_t *priority;
    // Not 0: give it the mark of a duplicate.
    uint8_t is_duplicate;
} twindex_document;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The `TWINDEX_ABI_VERSION` of the library that is loaded.
uint32_t twindex_abi_version(void);

// The version of the library that is loaded, such as "0.1.0". Never freed.
const char *twindex_version(void);

// The code of an error; `TWINDEX_CODE_OK` for null.
twindex_code twindex_error_code(const twindex_error *error);

// The message of an error, in UTF-8: what failed, where, what was expected and found. It lives as long as the error. An
// empty string for null.
const char *twindex_error_message(const twindex_error *error);

// Frees an error; null is allowed.
void twindex_error_free(twindex_error *error);

// The number of hits; 0 for null.
size_t twindex_hits_len(const twindex_hits *hits);

// The number of hits beyond the limit.
uint64_t twindex_hits_left_out(const twindex_hits *hits);

// The key of hit number `at`, from 0, and its length; null beyond the last. A key that is a number is shown as 8 bytes in
// the machine's order. It lives as long as the hits.
const uint8_t *twindex_hits_key(const twindex_hits *hits,
                                size_t at,
                                size_t *len);

// Bits in which the fingerprints differ; -1 where that is not known.
int32_t twindex_hits_distance(const twindex_hits *hits, size_t at);

// The resemblance, 0 to 1: counted in an index with sets, otherwise estimated; -1 where it is not known.
double twindex_hits_resemblance(const twindex_hits *hits, size_t at);

// Frees hits; null is allowed.
void twindex_hits_free(twindex_hits *hits);

// Reads the table at this path, a file that `twindex idf` or `twindex_idf_save` made. Free it.
twindex_code twindex_idf_open(const char *path, twindex_idf **idf, twindex_error **error);

// Writes the table to a file, durably, as a whole or not at all. A file that exists is an error unless `replace` is true.
twindex_code twindex_idf_save(const twindex_idf *idf,
                              const char *path,
                              bool replace,
                              twindex_error **error);

// Texts that were counted, those without shingles left out; 0 for null.
uint32_t twindex_idf_documents(const twindex_idf *idf);

// Shingles that the table has; 0 for null.
size_t twindex_idf_len(const twindex_idf *idf);

// Identifies the table, as parameters name it: 32 hexadecimal digits. It lives as long as the table. An empty string for
// null.
const char *twindex_idf_digest(const twindex_idf *idf);

// Frees a table; null is allowed. Parameters, sketchers and indexes that were made with it stay.
void twindex_idf_free(twindex_idf *idf);

// A counter of texts that are cut into shingles as these parameters say. Shingles of fewer than `min_df` texts are left out
// of the table, and of the others all but the `entries_max` most frequent ones; such a shingle has the weight of the rarest
// one that was left out. The command has 2 and 1,000,000. Free it.
twindex_code twindex_idf_counter_new(const twindex_params *params,
                                     uint32_t min_df,
                                     size_t entries_max,
                                     twindex_idf_counter **counter,
                                     twindex_error **error);

// Counts a text in UTF-8; bytes that are not UTF-8 are replaced by U+FFFD. Counts beyond 64 MB are moved to scratch files.
twindex_code twindex_idf_counter_add(const twindex_idf_counter *counter,
                                     const uint8_t *text,
                                     size_t text_len,
                                     twindex_error **error);

// Makes the table. The counter takes no more texts, and is still to be freed. Free the table.
twindex_code twindex_idf_counter_finish(const twindex_idf_counter *counter,
                                        twindex_idf **idf,
                                        twindex_error **error);

// Frees a counter; null is allowed.
void twindex_idf_counter_free(twindex_idf_counter *counter);

// Creates an empty index in a new directory and opens it. Never overwrites.
twindex_code twindex_index_create(const char *path,
                                  const twindex_params *params,
                                  twindex_index **index,
                                  twindex_error **error);

// Opens an index. Never creates one.
twindex_code twindex_index_open(const char *path, twindex_index **index, twindex_error **error);

// Opens the index at this path, or creates it. `TWINDEX_CODE_PARAMS_MISMATCH` if it has other parameters.
twindex_code twindex_index_open_or_create(const char *path,
                                          const twindex_params *params,
                                          twindex_index **index,
                                          twindex_error **error);

// The parameters of the index, complete, with the table of document frequencies that they name, if they name one. Free them.
twindex_code twindex_index_params(const twindex_index *index,
                                  twindex_params **params,
                                  twindex_error **error);

// A sketcher with the parameters of the index. Free it.
twindex_code twindex_index_sketcher(const twindex_index *index,
                                    twindex_sketcher **sketcher,
                                    twindex_error **error);

// The index as it is now. Later commits do not change it, and it keeps its files open until it is freed.
twindex_code twindex_index_snapshot(const twindex_index *index,
                                    twindex_snapshot **snapshot,
                                    twindex_error **error);

// Takes the lock and makes the one writer of the index. `TWINDEX_CODE_LOCKED` if there is one, in any process.
twindex_code twindex_index_writer(const twindex_index *index,
                                  twindex_writer **writer,
                                  twindex_error **error);

// Reads the commits of other processes. `changed`, which may be null, is set to whether there were any.
twindex_code twindex_index_refresh(const twindex_index *index, bool *changed, twindex_error **error);

// Fills `metrics`, whose `struct_size` says how large it is.
twindex_code twindex_index_metrics(const twindex_index *index,
                                   twindex_metrics *metrics,
                                   twindex_error **error);

// Checks all files of the index to the last byte. `TWINDEX_CODE_OK` says that it was checked, and
// `twindex_findings_problems` how many problems there are. Free the findings.
twindex_code twindex_index_verify(const twindex_index *index,
                                  twindex_findings **findings,
                                  twindex_error **error);

// Merges all segments to one. There must be no writer.
twindex_code twindex_index_compact(const twindex_index *index, twindex_error **error);

// Removes files that nothing needs. There must be no writer. `bytes`, which may be null, is set to what they had.
twindex_code twindex_index_gc(const twindex_index *index,
                              uint64_t *bytes,
                              twindex_error **error);

// Closes an index; null is allowed.
void twindex_index_free(twindex_index *index);

// Makes pages of a map that cannot be read an error of the call, instead of SIGBUS, in this process, once and for all. Only
// on Linux; `TWINDEX_CODE_UNSUPPORTED` elsewhere.
twindex_code twindex_guard_install(twindex_error **error);

// Sets `key` to the next key and `key_len` to its length; `key` to null at the end. The key lives until the next call
// for these keys, so two threads must not share them.
twindex_code twindex_keys_next(const twindex_keys *keys,
                               const uint8_t **key,
                               size_t *key_len,
                               twindex_error **error);

// Frees keys; null is allowed.
void twindex_keys_free(twindex_keys *keys);

// New parameters: keys are bytes, shingles have 5 words, and nothing is kept yet. Ranges are checked when they are used.
// Null if there is no memory.
twindex_params *twindex_params_new(void);

// Reads parameters from the text that `twindex_params_text` returns: the way to choices that have no function here.
// Parameters that name a table of document frequencies need it: `twindex_params_idf`.
twindex_code twindex_params_parse(const char *text,
                                  twindex_params **params,
                                  twindex_error **error);

// The canonical text of complete parameters (of `twindex_index_params` or `twindex_params_parse`), a line a choice. It
// lives as long as the handle. An empty string for parameters that are not complete.
const char *twindex_params_text(const twindex_params *params);

// Keys are 64-bit numbers instead of bytes.
twindex_code twindex_params_u64_keys(const twindex_params *params, twindex_error **error);

// Shingles have this many words, 1 to 16.
twindex_code twindex_params_words(const twindex_params *params, uint8_t width, twindex_error **error);

// The seed of all hash functions; 0 at first.
twindex_code twindex_params_seed(const twindex_params *params, uint64_t seed, twindex_error **error);

// Keeps 64-bit fingerprints, with tables for this Hamming radius.
twindex_code twindex_params_simhash(const twindex_params *params, uint8_t within, twindex_error **error);

// Keeps MinHash bands: `bands` of `rows` minima each.
twindex_code twindex_params_minhash(const twindex_params *params,
                                    uint16_t bands,
                                    uint16_t rows,
                                    twindex_error **error);

// Keeps MinHash bands by the name of a preset, such as "lsh-20x6" or "broder-84".
twindex_code twindex_params_preset(const twindex_params *params, const char *name, twindex_error **error);

// Bits kept of each minimum, for estimates; 0 keeps no signatures.
twindex_code twindex_params_signature_bits(const twindex_params *params, uint8_t bits, twindex_error **error);

// Keeps the least `t` hashes of each document, for containment.
twindex_code twindex_params_bottom(const twindex_params *params, uint16_t t, twindex_error **error);

// Keeps the hashes of each document that `modulus` divides, for containment.
twindex_code twindex_params_modulus(const twindex_params *params, uint32_t modulus, twindex_error **error);

// Keeps each document's distinct shingle hashes, so that resemblance is counted and no near document is missed.
twindex_code twindex_params_sets(const twindex_params *params,
                                 twindex_error **error);

// Keeps 64-bit fingerprints, with tables for this Hamming radius, in which each occurrence of a shingle votes by its inverse
// document frequency. Texts are cut as those of the table, whatever was chosen before.
twindex_code twindex_params_simhash_idf(const twindex_params *params,
                                        uint8_t within,
                                        const twindex_idf *idf,
                                        twindex_error **error);

// Shingles weigh as often as they occur in minima, samples and sets, instead of all the same.
twindex_code twindex_params_minhash_frequencies(const twindex_params *params, twindex_error **error);

// Shingles weigh as often as they occur, times their inverse document frequency by this table, in minima, samples and sets,
// instead of all the same. Weights are rounded to whole units, 1/256 to 2 each; a resemblance changes by at most `unit` / the
// mean weight, and a shingle costs as much as its units. A `unit` of 0 rounds nothing: minima are then taken by darts, and
// neither samples nor sets can be kept. Texts are cut as those of the table, whatever was chosen before.
twindex_code twindex_params_minhash_idf(const twindex_params *params,
                                        const twindex_idf *idf,
                                        double unit,
                                        twindex_error **error);

// Gives parameters that were read by `twindex_params_parse` the table of document frequencies that they name.
twindex_code twindex_params_idf(const twindex_params *params, const twindex_idf *idf, twindex_error **error);

// A sketcher with these parameters, without an index. Free it.
twindex_code twindex_params_sketcher(const twindex_params *params,
                                     twindex_sketcher **sketcher,
                                     twindex_error **error);

// Keeps a mark with each duplicate, so that documents are compared with unmarked ones only.
twindex_code twindex_params_marks(const twindex_params *params, twindex_error **error);

// Keeps a value of up to 65,536 bytes with each document.
twindex_code twindex_params_values(const twindex_params *params, twindex_error **error);

// Keeps a priority with each document, for groups.
twindex_code twindex_params_priorities(const twindex_params *params, twindex_error **error);

// Documents expire once the highest stamp exceeds theirs by `age` or more, in any unit.
twindex_code twindex_params_expire_after(const twindex_params *params, uint64_t age, twindex_error **error);

// Which documents are near: those with a resemblance of `threshold` or more, in (0, 1], or with fingerprints at most
// `within` bits apart. A threshold of 0 or a negative `within` leaves that rule out; one of the two must be there.
twindex_code twindex_params_near(const twindex_params *params,
                                 double threshold,
                                 int32_t within,
                                 twindex_error **error);

// Frees parameters; null is allowed. Indexes that were made with them stay.
void twindex_params_free(twindex_params *params);

// Sets `fingerprint`, if it is not null; false if the document has none.
bool twindex_record_fingerprint(const twindex_record *record, uint64_t *fingerprint);

// The value and its length; they live as long as the record.
const uint8_t *twindex_record_value(const twindex_record *record, size_t *len);

// Sets `stamp`, if it is not null; false if the document has none.
bool twindex_record_stamp(const twindex_record *record, uint64_t *stamp);

// Sets `priority`, if it is not null; false if the document has none.
bool twindex_record_priority(const twindex_record *record, uint64_t *priority);

// Whether the document has the mark of a duplicate.
bool twindex_record_is_duplicate(const twindex_record *record);

// Frees a record; null is allowed.
void twindex_record_free(twindex_record *record);

// Sketches a text in UTF-8; bytes that are not UTF-8 are replaced by U+FFFD. Free the sketch.
twindex_code twindex_sketcher_sketch(const twindex_sketcher *sketcher,
                                     const uint8_t *text,
                                     size_t text_len,
                                     twindex_sketch **sketch,
                                     twindex_error **error);

// Frees a sketcher; null is allowed.
void twindex_sketcher_free(twindex_sketcher *sketcher);

// True if the text had no tokens: it is near nothing.
bool twindex_sketch_is_empty(const twindex_sketch *sketch);

// Sets `fingerprint`, if it is not null, to the simhash fingerprint; false if there is none.
bool twindex_sketch_fingerprint(const twindex_sketch *sketch, uint64_t *fingerprint);

// The distinct shingle hashes, ascending, of an index with sets, and how many. They live as long as the sketch.
const uint64_t *twindex_sketch_set(const twindex_sketch *sketch,
                                   size_t *len);

// Frees a sketch; null is allowed.
void twindex_sketch_free(twindex_sketch *sketch);

// Live documents; 0 for null.
uint64_t twindex_snapshot_documents(const twindex_snapshot *snapshot);

// The number of its commit; 0 for null.
uint64_t twindex_snapshot_commit(const twindex_snapshot *snapshot);

// The payload of the last `twindex_writer_commit_with`, and its length; null if there is none. It lives as long as the
// snapshot.
const uint8_t *twindex_snapshot_payload(const twindex_snapshot *snapshot,
                                        size_t *len);

// Sets `contained` to whether there is a live document with this key.
twindex_code twindex_snapshot_contains(const twindex_snapshot *snapshot,
                                       const uint8_t *key_bytes,
                                       size_t key_len,
                                       bool *contained,
                                       twindex_error **error);

// Sets `record` to what is kept of the document with this key; to null, with `TWINDEX_CODE_OK`, if there is none. Free
// the record.
twindex_code twindex_snapshot_get(const twindex_snapshot *snapshot,
                                  const uint8_t *key_bytes,
                                  size_t key_len,
                                  twindex_record **record,
                                  twindex_error **error);

// All keys that begin with `prefix`, ascending; all keys for an empty prefix. Free them.
twindex_code twindex_snapshot_keys(const twindex_snapshot *snapshot,
                                   const uint8_t *prefix,
                                   size_t prefix_len,
                                   twindex_keys **keys,
                                   twindex_error **error);

// The documents near a sketch, by the rule of the index: at most `limit`, the nearest. Free the hits.
twindex_code twindex_snapshot_near(const twindex_snapshot *snapshot,
                                   const twindex_sketch *sketch,
                                   size_t limit,
                                   twindex_hits **hits,
                                   twindex_error **error);

// The documents whose resemblance to a sketch is `threshold` or more. `flags` is 0 or a sum of `TWINDEX_QUERY_...`.
twindex_code twindex_snapshot_resembling(const twindex_snapshot *snapshot,
                                         const twindex_sketch *sketch,
                                         double threshold,
                                         uint32_t flags,
                                         size_t limit,
                                         twindex_hits **hits,
                                         twindex_error **error);

// The documents whose fingerprints differ from this one in at most `within` bits, exactly.
twindex_code twindex_snapshot_within(const twindex_snapshot *snapshot,
                                     uint64_t fingerprint,
                                     uint32_t within,
                                     size_t limit,
                                     twindex_hits **hits,
                                     twindex_error **error);

// Frees a snapshot; null is allowed.
void twindex_snapshot_free(twindex_snapshot *snapshot);

// The number of problems: 0 for a sound index.
size_t twindex_findings_problems(const twindex_findings *findings);

// Problem number `at`, from 0; null beyond the last. It lives as long as the findings.
const char *twindex_findings_problem(const twindex_findings *findings, size_t at);

// The number of notes: harmless observations.
size_t twindex_findings_notes(const twindex_findings *findings);

// Note number `at`, from 0; null beyond the last. It lives as long as the findings.
const char *twindex_findings_note(const twindex_findings *findings, size_t at);

// Bytes that were checked.
uint64_t twindex_findings_bytes(const twindex_findings *findings);

// Frees findings; null is allowed.
void twindex_findings_free(twindex_findings *findings);

// Adds a document, or replaces the one of this key.
twindex_code twindex_writer_put(const twindex_writer *writer,
                                const uint8_t *key_bytes,
                                size_t key_len,
                                const twindex_document *document,
                                twindex_error **error);

// Adds the document with this text in UTF-8, or replaces the one of this key.
twindex_code twindex_writer_put_text(const twindex_writer *writer,
                                     const uint8_t *key_bytes,
                                     size_t key_len,
                                     const uint8_t *text,
                                     size_t text_len,
                                     twindex_error **error);

// Finds the nearest document and adds this one, as one step. `near`, which may be null, is set to that document for
// `TWINDEX_ADMITTED_KNOWN` and `_DUPLICATE`, otherwise to null. Free the hits.
twindex_code twindex_writer_admit(const twindex_writer *writer,
                                  const uint8_t *key_bytes,
                                  size_t key_len,
                                  const twindex_document *document,
                                  twindex_admitted *admitted,
                                  twindex_hits **near,
                                  twindex_error **error);

// As `twindex_writer_admit`, with a text in UTF-8.
twindex_code twindex_writer_admit_text(const twindex_writer *writer,
                                       const uint8_t *key_bytes,
                                       size_t key_len,
                                       const uint8_t *text,
                                       size_t text_len,
                                       twindex_admitted *admitted,
                                       twindex_hits **near,
                                       twindex_error **error);

// Removes the document with this key, if there is one.
twindex_code twindex_writer_delete(const twindex_writer *writer,
                                   const uint8_t *key_bytes,
                                   size_t key_len,
                                   twindex_error **error);

// Sets `contained` to whether there is a document with this key, with the batch.
twindex_code twindex_writer_contains(const twindex_writer *writer,
                                     const uint8_t *key_bytes,
                                     size_t key_len,
                                     bool *contained,
                                     twindex_error **error);

// Publishes the batch, durably unless less was asked for. `commit`, which may be null, is set to its number.
twindex_code twindex_writer_commit(const twindex_writer *writer, uint64_t *commit, twindex_error **error);

// As `twindex_writer_commit`, and keeps up to 64 KiB of the caller's with the commit: where to go on after a crash.
twindex_code twindex_writer_commit_with(const twindex_writer *writer,
                                        const uint8_t *payload,
                                        size_t payload_len,
                                        uint64_t *commit,
                                        twindex_error **error);

// Makes all commits survive the machine.
twindex_code twindex_writer_sync(const twindex_writer *writer, twindex_error **error);

// Sets the durability of commits: one of `TWINDEX_DURABILITY_...`.
twindex_code twindex_writer_durability(const twindex_writer *writer,
                                       uint32_t durability,
                                       twindex_error **error);

// Not 0: `twindex_writer_admit` leaves duplicates out. 0 at first.
twindex_code twindex_writer_drop_duplicates(const twindex_writer *writer,
                                            int32_t drop_duplicates,
                                            twindex_error **error);

// Not 0: `twindex_writer_admit` may drop or mark a document by an estimate, in an index without sets. 0 at first.
twindex_code twindex_writer_estimated(const twindex_writer *writer,
                                      int32_t estimated,
                                      twindex_error **error);

// The near relation of this writer, as in `twindex_params_near`.
twindex_code twindex_writer_near(const twindex_writer *writer,
                                 double threshold,
                                 int32_t within,
                                 twindex_error **error);

// The bytes of records that a batch may hold in memory.
twindex_code twindex_writer_memory(const twindex_writer *writer, size_t bytes, twindex_error **error);

// Ends a writer; null is allowed. A batch that was not committed is gone.
void twindex_writer_free(twindex_writer *writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TWINDEX_H */
