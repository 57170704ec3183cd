// Prints what a document and a key cost from C++: costs INDEX. scripts/capi costs runs it beside Java and Go.
#include <chrono>
#include <cstdio>
#include <twindex.hpp>

static const int PAGES = 20000, KEYS = 200000;
using Clock = std::chrono::steady_clock;

static void print(const char *what, Clock::time_point start, int count) {
    std::printf("cpp %s %.2f us\n", what, std::chrono::duration<double, std::micro>(Clock::now() - start).count() / count);
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
    twindex::Writer writer = index.writer();
    writer.set("durability", "none").set("threads", "1");
    auto start = Clock::now();
    for (int i = 0; i < PAGES / 2; i++) writer.put(keys[i], texts[i]);
    print("document, single", start, PAGES / 2);
    writer.commit();
    twindex::Documents documents;
    start = Clock::now();
    for (int i = PAGES / 2; i < PAGES; i++) {
        documents.add(keys[i], texts[i]);
        if (documents.size() == 100) {
            writer.put_many(documents);
            documents.clear();
        }
    }
    print("document, batch", start, PAGES / 2);
    writer.commit();
    twindex::Snapshot snapshot = index.snapshot();
    start = Clock::now();
    for (int i = 0; i < KEYS; i++) snapshot.contains(keys[i % PAGES]);
    print("key looked up, single", start, KEYS);
    start = Clock::now();
    int listed = 0;
    for (int i = 0; i < 10; i++) {
        twindex::Keys all = snapshot.keys();
        for (size_t found = all.next().size(); found > 0; found = all.next().size()) listed += int(found);
    }
    print("key listed, batch", start, listed);
    twindex_keys *walk;
    twindex_error *error;
    start = Clock::now();
    if (twindex_snapshot_keys(snapshot.get(), nullptr, 0, &walk, &error) != TWINDEX_CODE_OK) return 1;
    const uint8_t *key;
    size_t len;
    while (twindex_keys_next(walk, &key, &len, &error) == TWINDEX_CODE_OK && key != nullptr) {}
    twindex_keys_free(walk);
    print("key listed, single", start, PAGES);
    return 0;
}
