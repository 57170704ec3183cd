//! The Python module `twindex._twindex`, whose items `twindex/__init__.py` re-exports. Types and documentation for users
//! are in `twindex/__init__.pyi`.
//!
//! Long calls release the interpreter's lock and use all cores. This crate has no `unsafe` code: `PyO3` and `pyo3-arrow`
//! contain the unsafe code for the interpreter and for Arrow's C data interface.

#![allow(missing_docs, reason = "Python's users read twindex/__init__.pyi")]
#![allow(clippy::doc_markdown, reason = "what help() prints has no backticks around each name")]
#![allow(clippy::needless_pass_by_value, reason = "arguments come from Python as values of their own")]

mod args;
mod arrays;
mod columns;
mod cut;
mod dedup;
mod error;
mod fields;
mod forest;
mod hit;
mod idf;
mod index;
mod lookup;
mod numbers;
mod pairs;
mod params;
mod passages;
mod process;
mod rows;
mod rule;
mod settings;
mod shard;
mod sketch;
mod spans;
mod stream;
mod values;
mod watch;
mod writing;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Sets the number of threads for batches. Must be called before the first batch. Each call in a forked process starts
/// its own threads.
#[pyfunction]
fn set_threads(#[pyo3(from_py_with = args::threads)] threads: usize) -> PyResult<()> {
    if process::is_fork() {
        process::THREADS.store(threads, std::sync::atomic::Ordering::Relaxed);
        return Ok(());
    }
    let made = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    if made.is_err() && threads > 0 && rayon::current_num_threads() != threads {
        return Err(PyValueError::new_err(format!(
            "{} threads are at work already; call set_threads before the first batch",
            rayon::current_num_threads()
        )));
    }
    process::THREADS.store(threads, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

#[pymodule]
fn _twindex(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<params::Params>()?;
    module.add_class::<sketch::Sketch>()?;
    module.add_class::<sketch::Sketcher>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<hit::Hit>()?;
    module.add_class::<idf::IdfTable>()?;
    module.add_class::<hit::Admitted>()?;
    module.add_class::<values::Values>()?;
    module.add_class::<shard::ShardBuilder>()?;
    module.add_class::<forest::Forest>()?;
    module.add_class::<dedup::Dedup>()?;
    module.add_class::<stream::Batches>()?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::dedup, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::keep_rules, module)?)?;
    module.add_function(wrap_pyfunction!(passages::passages, module)?)?;
    module.add_function(wrap_pyfunction!(settings::_settings, module)?)?;
    module.add_function(wrap_pyfunction!(rule::spark_rule, module)?)?;
    module.add_function(wrap_pyfunction!(rule::spark_key, module)?)?;
    module.add_function(wrap_pyfunction!(rule::shingle_sets, module)?)?;
    module.add_function(wrap_pyfunction!(rule::set_prefixes, module)?)?;
    module.add_function(wrap_pyfunction!(rule::count_shared, module)?)?;
    module.add_function(wrap_pyfunction!(passages::passage_fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(passages::passage_grams, module)?)?;
    module.add_function(wrap_pyfunction!(rule::canonical_features, module)?)?;
    module.add_function(wrap_pyfunction!(spans::span_fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(spans::span_runs, module)?)?;
    module.add_function(wrap_pyfunction!(spans::span_list, module)?)?;
    module.add_function(wrap_pyfunction!(shard::shards_of, module)?)?;
    module.add_function(wrap_pyfunction!(shard::key_hashes, module)?)?;
    module.add_function(wrap_pyfunction!(shard::clean, module)?)?;
    module.add_function(wrap_pyfunction!(shard::hash_of, module)?)?;
    Ok(())
}
