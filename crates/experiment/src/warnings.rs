//! What a reader of a valid experiment should know: settings without effect.

use crate::diagnostic::key_path;
use crate::model::{Experiment, Flow};
use dumbbell_tcp::Ecn;

const WITHOUT_ECN: &str = "without accurate ECN dctcp reacts to losses only, as Reno does; write \
                           ecn = \"accurate\" in [stack_options], and a queue that marks";

impl Experiment {
    /// Sentences on settings that have no effect when the experiment is simulated.
    ///
    /// # Panics
    /// As [`resolve`](Experiment::resolve).
    pub fn warnings(&self) -> Vec<&'static str> {
        let base = self.base_stack().expect("a checked stack");
        let is_without_ecn = |flow: &Flow| {
            let name = flow.cc.split('(').next().unwrap_or_default();
            let ecn = || self.flow_stack(flow, &base, &key_path![]).expect("a checked stack").ecn;
            name.trim() == "dctcp" && ecn() != Ecn::Accurate
        };
        self.flows.iter().any(is_without_ecn).then_some(WITHOUT_ECN).into_iter().collect()
    }
}
