//! Errors of the testbed.

use std::io;

/// Why a scenario cannot be run with real packets.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The machine lacks a feature or a permission.
    #[error("the testbed cannot {what}: {error}; {remedy}")]
    Unavailable {
        /// The attempted action, as an infinitive.
        what: String,
        /// The kernel's error.
        error: io::Error,
        /// How to obtain the feature or the permission.
        remedy: String,
    },
    /// The scenario has a setting that the kernel does not support.
    #[error("flow \"{flow}\": {key} cannot be {value} with real packets: {reason}")]
    Unsupported {
        /// Name of the flow.
        flow: String,
        /// Key of the setting in the experiment file.
        key: String,
        /// Value of the setting.
        value: String,
        /// The reason, and a valid value.
        reason: String,
    },
    /// The scenario is not valid.
    #[error(transparent)]
    Scenario(#[from] dumbbell_sim::ScenarioError),
    /// A system call failed.
    #[error("the testbed failed while it {doing}: {error}")]
    Failed {
        /// The action that failed, in the past tense.
        doing: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The caller stopped the run.
    #[error("the run was stopped")]
    Stopped,
}

impl TestbedError {
    /// For `map_err`: [`TestbedError::Failed`] with the action.
    pub(crate) fn failed<E: Into<io::Error>>(doing: &'static str) -> impl Fn(E) -> TestbedError {
        move |error| TestbedError::Failed { doing, error: error.into() }
    }

    /// For `map_err`: [`TestbedError::Unavailable`] with the action and the remedy.
    pub(crate) fn unavailable<E: Into<io::Error>>(
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> impl FnOnce(E) -> TestbedError {
        let (what, remedy) = (what.into(), remedy.into());
        move |error| TestbedError::Unavailable { what, error: error.into(), remedy }
    }
}
