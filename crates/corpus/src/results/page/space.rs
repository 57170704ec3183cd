//! The disk space of an index by kind of section.

use std::collections::BTreeMap;
use std::path::Path;

use twindex::Snapshot;
use twindex::format::contents::Kind;

/// The disk space of an index.
pub struct Space {
    /// Number of bytes by kind of section. `other` includes headers, tables of contents, checksums, gaps, the manifest
    /// and `CURRENT`.
    pub sections: BTreeMap<&'static str, u64>,
    /// Number of bytes in the files of the current generation. Excludes the lock, earlier generations and foreign
    /// files.
    pub on_disk: u64,
    /// Number of distinct fingerprints in each segment, summed over the segments.
    pub distinct: u64,
}

impl Space {
    /// Computes the disk space of `snapshot`, whose index is in `dir`.
    #[must_use]
    pub fn of(snapshot: &Snapshot, dir: &Path) -> Self {
        let mut sections: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut distinct = 0;
        // Documents in the log form a segment that is not on disk.
        let on_disk = snapshot.entries().len();
        for (place, (segment, _)) in snapshot.segments().enumerate() {
            distinct += segment.distinct_fingerprints();
            if place >= on_disk {
                continue;
            }
            for section in segment.sections() {
                *sections.entry(section.kind.name()).or_default() += section.length;
            }
        }
        // Read the lengths of segments from the manifest. Another process may have removed the manifest file meanwhile.
        let manifest = format!("MANIFEST-{:06}", snapshot.manifest().generation);
        let length = |name: &str| std::fs::metadata(dir.join(name)).map_or(0, |metadata| metadata.len());
        let segments: u64 = snapshot.entries().iter().map(|entry| entry.length).sum();
        let on_disk = segments + length("CURRENT") + length(&manifest);
        let table = snapshot.params().sketch().idf_table().ok().flatten();
        let idf = table.map_or(0, |table| length(&format!("IDF-{table:032x}")));
        sections.insert("idf", idf);
        let log: u64 = snapshot
            .manifest()
            .logged
            .iter()
            .flat_map(|logged| &logged.logs)
            .map(|log| length(&format!("LOG-{:06}", log.number)))
            .sum();
        sections.insert("log", log);
        let on_disk = on_disk + idf + log;
        let named: u64 = sections.values().sum();
        sections.insert("other", on_disk.saturating_sub(named));
        Self { sections, on_disk, distinct }
    }

    /// Returns the number of bytes per distinct fingerprint; 0 if there are no fingerprints. Excludes keys, values,
    /// stamps, the ranks and postings that connect documents and fingerprints, the IDF table and the log.
    pub fn per_fingerprint(&self) -> f64 {
        let kinds = [Kind::Keys, Kind::Ranks, Kind::Postings, Kind::Values, Kind::Stamps].map(Kind::name);
        let names = kinds.iter().copied().chain(["idf", "log"]);
        let of_documents: u64 = names.filter_map(|name| self.sections.get(name)).sum();
        if self.distinct == 0 {
            return 0.0;
        }
        self.on_disk.saturating_sub(of_documents) as f64 / self.distinct as f64
    }
}
