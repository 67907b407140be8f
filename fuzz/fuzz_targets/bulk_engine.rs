//! The target `bulk-engine`, with or without cargo-fuzz.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dumbbell_fuzz::bulk_engine::run(bytes));

#[cfg(not(fuzzing))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    dumbbell_fuzz::search::main("bulk-engine", dumbbell_fuzz::bulk_engine::run)
}
