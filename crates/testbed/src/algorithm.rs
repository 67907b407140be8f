//! Names of congestion control algorithms in the kernel.

use dumbbell_sim::FlowSpec;

/// The algorithms that Linux has built in or as modules (net/ipv4/tcp_*.c).
pub(crate) const LINUX_ALGORITHMS: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

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

/// Whether the kernel's algorithm has a part in the receiver, which echoes each mark: DCTCP (RFC 8257,
/// section 3.2).
pub(crate) fn echoes_marks(cc: &str) -> bool {
    cc.contains("dctcp")
}

/// Whether an algorithm of the kernel is an eBPF program of dumbbell.
pub(crate) fn is_bpf_program(name: &str) -> bool {
    name.starts_with("db_")
}

/// Those of a list of available algorithms that the kernel has without dumbbell's eBPF programs,
/// with commas.
pub(crate) fn own_algorithms(available: &str) -> String {
    let names = available.split_whitespace().filter(|name| !is_bpf_program(name));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_of_ebpf_are_not_the_kernel_s_own() {
        assert_eq!(own_algorithms("reno bbr cubic db_bbr3\n"), "reno, bbr, cubic");
    }
}
