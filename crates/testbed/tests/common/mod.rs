//! Runs with real packets, one at a time.

use dumbbell_sim::Scenario;
use dumbbell_testbed::{TestbedError, TestbedOutcome, run};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// Held during a run: runs beside each other would delay each other's packets.
static MACHINE: Mutex<()> = Mutex::new(());

/// A run; `None`, with the reason printed, if the machine lacks something for it.
pub fn run_here(scenario: &Scenario) -> Result<Option<TestbedOutcome>, TestbedError> {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    match run(scenario, 1, |_| ControlFlow::Continue(())) {
        Err(error @ TestbedError::Unavailable { .. }) => {
            println!("skipped: {error}");
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}
