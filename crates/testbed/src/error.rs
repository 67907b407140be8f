//! What can be in the way of a run.

use std::io;

/// Why a scenario cannot be run with real packets.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The machine does not let us, or cannot.
    #[error("the testbed cannot {what}: {error}; {remedy}")]
    Missing {
        /// What was tried.
        what: String,
        /// What the kernel said.
        error: io::Error,
        /// What to do about it.
        remedy: String,
    },
    /// The scenario asks for what a kernel does not do.
    #[error("flow \"{flow}\": {key} cannot be {value} with real packets: {reason}")]
    Unsupported {
        /// The flow.
        flow: String,
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The scenario is not valid.
    #[error(transparent)]
    Scenario(#[from] dumbbell_sim::ScenarioError),
    /// It went wrong on the way.
    #[error("the testbed failed while it {doing}: {error}")]
    Failed {
        /// What it did.
        doing: &'static str,
        /// What went wrong.
        error: io::Error,
    },
    /// It was told to stop.
    #[error("the run was stopped")]
    Stopped,
}

impl TestbedError {
    /// For `map_err`: it went wrong while it did this.
    pub(crate) fn failed<E: Into<io::Error>>(doing: &'static str) -> impl Fn(E) -> TestbedError {
        move |error| TestbedError::Failed { doing, error: error.into() }
    }

    /// For `map_err`: the machine does not let us do this.
    pub(crate) fn missing<E: Into<io::Error>>(
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> impl FnOnce(E) -> TestbedError {
        let (what, remedy) = (what.into(), remedy.into());
        move |error| TestbedError::Missing { what, error: error.into(), remedy }
    }
}
