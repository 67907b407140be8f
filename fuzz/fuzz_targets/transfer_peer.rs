//! The target `transfer-peer`, with or without cargo-fuzz.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dumbbell_fuzz::transfer_peer::run(bytes));

#[cfg(not(fuzzing))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    dumbbell_fuzz::search::main("transfer-peer", dumbbell_fuzz::transfer_peer::run)
}
