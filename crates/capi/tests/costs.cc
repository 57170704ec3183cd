// Prints what a document and a key cost from C++, in CPU time: costs INDEX. scripts/capi costs runs it beside Java and Go.
#include <cstdio>
#include <ctime>
#include <twindex.hpp>

static const int PAGES = 20000, KEYS = 200000;

static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e6 + double(time.tv_nsec) / 1e3;
}

template <typename Step> static void measure(const char *what, bool is_warm, Step step) {
    double start = now();
    int count = step();
    if (is_warm) std::printf("cpp %s %.2f us\n", what, (now() - start) / count);
}

static int put(twindex::Index &index, const std::vector<std::string> &keys, const std::vector<std::string> &texts, size_t batch) {
    twindex::Writer writer = index.writer();
    writer.set("durability", "none").set("background_merges", "false");
    twindex::Documents documents;
    for (size_t i = 0; i < keys.size(); i++) {
        if (batch == 1) {
            writer.put(keys[i], texts[i]);
        } else if (documents.add(keys[i], texts[i]).size() == batch) {
            writer.put_many(documents);
            documents.clear();
        }
    }
    writer.rollback();
    return int(keys.size());
}

int main(int, char **args) {
    std::vector<std::string> keys, texts;
    for (int64_t number = 0; number < PAGES; number++) {
        std::string text;
        for (int64_t i = 0; i < 100; i++) text += "word" + std::to_string((number * 7919 + i * 104729) % 99991) + " ";
        texts.push_back(text);
        keys.push_back("https://example.org/" + std::to_string(number));
    }
    twindex::Index index = twindex::Index::create(args[1], twindex::Params{{"near", "0.8"}});
    for (bool is_warm : {false, false, true, true, true}) {
        measure("document, single", is_warm, [&] { return put(index, keys, texts, 1); });
        measure("document, batch", is_warm, [&] { return put(index, keys, texts, 100); });
    }
    {
        twindex::Writer writer = index.writer();
        twindex::Documents all;
        for (int i = 0; i < PAGES; i++) all.add(keys[i], texts[i]);
        writer.put_many(all);
        writer.commit();
    }
    twindex::Snapshot snapshot = index.snapshot();
    for (bool is_warm : {false, false, true, true, true}) {
        measure("key looked up, single", is_warm, [&] {
            for (int i = 0; i < KEYS; i++) snapshot.contains(keys[i % PAGES]);
            return KEYS;
        });
        measure("key listed, batch", is_warm, [&] {
            int listed = 0;
            for (int i = 0; i < 10; i++) {
                twindex::Keys all = snapshot.keys();
                for (size_t found = all.next().size(); found > 0; found = all.next().size()) listed += int(found);
            }
            return listed;
        });
        measure("key listed, single", is_warm, [&] {
            twindex_keys *walk;
            twindex_error *error;
            int listed = 0;
            for (int i = 0; i < 10; i++) {
                if (twindex_snapshot_keys(snapshot.get(), nullptr, 0, &walk, &error) != TWINDEX_CODE_OK) return 1;
                const uint8_t *key;
                size_t len;
                for (; twindex_keys_next(walk, &key, &len, &error) == TWINDEX_CODE_OK && key != nullptr; listed++) {}
                twindex_keys_free(walk);
            }
            return listed;
        });
    }
    return 0;
}
