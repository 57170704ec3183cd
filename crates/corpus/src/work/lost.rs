//! Detects I/O errors in memory-mapped files. Results that are computed after one must not be published.

/// Returns an error if a page of a mapped file could not be read ([`twindex::sys::guard`]). Jobs call this before they
/// rename results to the final name, and at their end.
pub fn check() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    anyhow::ensure!(
        !twindex::sys::guard::anything_lost(),
        "a page of a mapped file could not be read, as the file was cut short or its disk failed: what was found is \
         not complete"
    );
    Ok(())
}
