//! The stacks as experiment files name them.

use dumbbell_experiment::quic::{QUIC_STACKS, QuicOptions as FileOptions, quic_fields};
use dumbbell_quic::{QuicOptions, STACKS};

#[test]
fn experiment_files_name_the_stacks_and_algorithms_that_there_are() {
    let named = QUIC_STACKS.iter().map(|stack| {
        let algorithms: Vec<_> = stack.algorithms.iter().map(|(name, _)| *name).collect();
        (stack.name, algorithms)
    });
    let known = STACKS.iter().map(|(name, algorithms)| (*name, algorithms.to_vec()));
    assert_eq!(named.collect::<Vec<_>>(), known.collect::<Vec<_>>());
}

#[test]
fn the_options_of_experiment_files_are_those_of_the_stacks() {
    let options = quic_fields(&FileOptions::default());
    assert_eq!(QuicOptions::parse(&options), Ok(QuicOptions::default()));
    let all = serde_json::to_value(QuicOptions::default()).expect("a table");
    assert_eq!(serde_json::to_value(&options).expect("a table"), all);
}
