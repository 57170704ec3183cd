//! Detects pages of memory-mapped files that could not be read. After such a failure, results must not be published.

/// Returns an error if a page of a mapped file could not be read ([`twindex::sys::guard`]). Called before results are
/// renamed to their final name, and at the end of a job.
pub fn check() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    anyhow::ensure!(
        !twindex::sys::guard::anything_lost(),
        "a page of a mapped file could not be read, as the file was cut short or its disk failed: what was found is \
         not complete"
    );
    Ok(())
}
