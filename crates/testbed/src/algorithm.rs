//! Names of congestion control algorithms in the kernel.

use dumbbell_sim::FlowSpec;

/// The kernel's name for a flow's algorithm: `kernel_cc`, or `cc` without its options.
pub(crate) fn kernel_name(flow: &FlowSpec) -> &str {
    let ours = || flow.cc.split('(').next().unwrap_or_default().trim();
    flow.kernel_cc.as_deref().unwrap_or_else(ours)
}

/// Whether `cc` has options, which only the simulator and UDT support.
pub(crate) fn has_options(cc: &str) -> bool {
    cc.contains('(')
}

/// Whether the kernel's algorithm sets the pacing rate itself.
pub(crate) fn sets_pacing_rate(cc: &str) -> bool {
    cc.contains("bbr")
}
