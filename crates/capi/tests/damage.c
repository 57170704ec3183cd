/* Tests the C interface on damaged indexes. Usage: damage INDEX COPY ROUNDS, with an undamaged index. Each round copies it
 * to COPY, flips a bit or truncates a file there, and calls all functions of readers and writers. Each call may return an
 * error; a crash or a report of AddressSanitizer ends the program. At least half of the rounds must report the damage. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <twindex.h>
#include <unistd.h>

enum { FILES = 64, NAME = 256 };
static char names[FILES][NAME];
static unsigned char *contents[FILES];
static size_t sizes[FILES];
static int files;
static unsigned long long state = 42;

static unsigned long long next(void) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33;
}

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static void read_all(const char *folder) {
    DIR *dir = opendir(folder);
    if (dir == NULL) fail(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        if (files == FILES) fail("too many files");
        snprintf(names[files], NAME, "%.255s", entry->d_name);
        sizes[files] = (size_t)info.st_size;
        contents[files] = malloc(sizes[files] + 1);
        FILE *file = fopen(path, "rb");
        if (file == NULL || fread(contents[files], 1, sizes[files], file) != sizes[files]) fail(path);
        fclose(file);
        files++;
    }
    closedir(dir);
}

static void remove_all(const char *folder) {
    DIR *dir = opendir(folder);
    if (dir == NULL) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

/* Writes copies of all files to the folder, with one of them damaged. */
static void copy(const char *folder, int damaged) {
    remove_all(folder);
    if (mkdir(folder, 0700) != 0) fail(folder);
    for (int i = 0; i < files; i++) {
        char path[4096];
        size_t size = sizes[i], at = size == 0 ? 0 : next() % size;
        int cut = next() % 4 == 0;
        unsigned char bit = (unsigned char)(1U << next() % 8);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "wb");
        if (file == NULL) fail(path);
        if (i == damaged && size > 0) {
            contents[i][at] ^= bit;
            fwrite(contents[i], 1, cut ? at : size, file);
            contents[i][at] ^= bit;
        } else {
            fwrite(contents[i], 1, size, file);
        }
        if (fclose(file) != 0) fail(path);
    }
}

static int errors;

static int good(twindex_code code, twindex_error *error) {
    if (code != TWINDEX_CODE_OK) {
        if (error == NULL || twindex_error_message(error)[0] == 0 || code == TWINDEX_CODE_PANICKED) {
            fprintf(stderr, "code %d: %s\n", code, twindex_error_message(error));
            exit(1);
        }
        errors++;
    }
    twindex_error_free(error);
    return code == TWINDEX_CODE_OK;
}

#define GOOD(call) (error = NULL, code = (call), good(code, error))

static void use(const char *folder) {
    twindex_error *error;
    twindex_code code;
    twindex_index *index;
    twindex_snapshot *snapshot;
    twindex_sketcher *sketcher;
    twindex_findings *findings;
    twindex_writer *writer;
    if (!GOOD(twindex_index_open(folder, &index, &error))) return;
    if (GOOD(twindex_index_snapshot(index, &snapshot, &error))) {
        twindex_hits *hits;
        twindex_keys *keys;
        twindex_sketch *sketch = NULL;
        size_t len;
        if (GOOD(twindex_index_sketcher(index, &sketcher, &error))) {
            static const char text[] = "a rose is a rose is a rose";
            if (GOOD(twindex_sketcher_sketch(sketcher, (const uint8_t *)text, sizeof text - 1, &sketch, &error))
                && GOOD(twindex_snapshot_near(snapshot, sketch, 10, &hits, &error))) {
                for (size_t i = 0; i < twindex_hits_len(hits); i++) twindex_hits_key(hits, i, &len);
                twindex_hits_free(hits);
            }
            twindex_sketcher_free(sketcher);
        }
        if (GOOD(twindex_snapshot_within(snapshot, next(), 3, 10, &hits, &error))) twindex_hits_free(hits);
        if (GOOD(twindex_snapshot_keys(snapshot, NULL, 0, &keys, &error))) {
            const uint8_t *key;
            while (GOOD(twindex_keys_next(keys, &key, &len, &error)) && key != NULL) {
                twindex_record *record;
                if (GOOD(twindex_snapshot_get(snapshot, key, len, &record, &error))) {
                    twindex_record_value(record, &len);
                    twindex_record_free(record);
                }
            }
            twindex_keys_free(keys);
        }
        twindex_sketch_free(sketch);
        twindex_snapshot_free(snapshot);
    }
    if (GOOD(twindex_index_verify(index, &findings, &error))) {
        errors += (int)twindex_findings_problems(findings);
        twindex_findings_free(findings);
    }
    if (GOOD(twindex_index_writer(index, &writer, &error))) {
        static const uint8_t key[] = "new";
        GOOD(twindex_writer_put_text(writer, key, 3, key, 3, &error));
        GOOD(twindex_writer_commit(writer, NULL, &error));
        twindex_writer_free(writer);
    }
    twindex_index_free(index);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int rounds = atoi(argv[3]), noticed = 0;
    read_all(argv[1]);
    if (files == 0 || rounds < 1) return 2;
    for (int round = 0; round < rounds; round++) {
        errors = 0;
        copy(argv[2], round % files);
        use(argv[2]);
        noticed += errors > 0;
    }
    for (int i = 0; i < files; i++) free(contents[i]);
    remove_all(argv[2]);
    printf("damage: %d rounds, %d reported, no crash\n", rounds, noticed);
    return noticed * 2 >= rounds ? 0 : 1;
}
