//! Tests that, with the feature `tracing`, a subscriber receives openings, commits, new segments, and failures.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use twindex::{Fingerprint, Index, MemoryVfs, Params, WriterOptions};

/// Records the names of spans, and the levels and messages of events.
#[derive(Clone, Default)]
struct TraceRecorder(Arc<Mutex<Vec<String>>>);

impl Visit for TraceRecorder {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for TraceRecorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "twindex"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().unwrap().push(span.metadata().name().to_owned());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        assert_ne!(*event.metadata().level(), Level::ERROR);
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn tracing_subscriber_receives_opens_commits_and_segments() {
    let kept = TraceRecorder::default();
    tracing::subscriber::with_default(kept.clone(), || {
        let params = Params::builder().u64_keys().simhash(3).build().unwrap();
        let vfs = Arc::new(MemoryVfs::default());
        let index = Index::create_with(vfs, Path::new("/index"), params).unwrap();
        let mut writer = index.writer_with(WriterOptions::default().memtable(10, 1 << 20)).unwrap();
        for key in 0..10 {
            writer.put(key, Fingerprint(key)).unwrap();
        }
        writer.commit().unwrap();
        writer.wait_for_merge().unwrap();
    });
    let kept = kept.0.lock().unwrap();
    // The subscriber also receives the span of the background thread that writes the segment.
    assert_eq!(*kept, ["open", "commit", "a full memtable is frozen", "a memtable became a segment"]);
}
