//! Tests that measure the largest allocation of each thread. They are a separate program, because they replace the global
//! allocator, and a program has only one.

#[path = "../support/allocations.rs"]
mod allocations;
#[path = "../support/mod.rs"]
mod support;

mod damage;
mod damage_doors;
mod damage_experiment;
mod damage_maker;
mod damage_outcomes;
