//! Tests of the public interface, one module for each subject.

mod arrow;
mod compressed;
mod corpora;
mod doors;
mod families;
mod fuzz_regressions;
mod histories;
mod json_arrays;
mod passages;
mod paths;
mod resume;
mod rule;
mod survivors;
mod urls;
