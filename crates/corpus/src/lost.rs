//! Pages of mapped files that could not be read: no results may be published after that.

/// Returns an error once a page of a mapped file was lost ([`twindex::sys::guard`]). Called before results are renamed into
/// place, and at the end.
pub fn check() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    anyhow::ensure!(
        !twindex::sys::guard::anything_lost(),
        "a page of a mapped file could not be read, as the file was cut short or its disk failed: what was found is \
         not complete"
    );
    Ok(())
}
