//! What a kernel calls the algorithms.

use dumbbell_sim::FlowSpec;

/// The kernel's name of a flow's algorithm.
pub(crate) fn kernel_name(flow: &FlowSpec) -> &str {
    let ours = || flow.cc.split('(').next().unwrap_or_default().trim();
    flow.kernel_cc.as_deref().unwrap_or_else(ours)
}

/// Whether `cc` has options: those are the simulator's.
pub(crate) fn has_options(cc: &str) -> bool {
    cc.contains('(')
}

/// Whether the algorithm sets a pacing rate of its own.
pub(crate) fn is_paced(cc: &str) -> bool {
    cc.contains("bbr")
}
