//! What a kernel calls the algorithms.

/// The kernel's name of an algorithm of ours. Those that it calls the same are not listed, and
/// neither are those that it does not have, which eBPF may provide by our name.
pub fn kernel_name(cc: &str) -> &str {
    let name = cc.split('(').next().unwrap_or(cc).trim();
    match name {
        "stcp" => "scalable",
        "hstcp" => "highspeed",
        name => name,
    }
}

/// Whether `cc` has options: those are the simulator's.
pub(crate) fn has_options(cc: &str) -> bool {
    cc.contains('(')
}

/// Whether the algorithm sets a pacing rate of its own.
pub(crate) fn is_paced(cc: &str) -> bool {
    kernel_name(cc).contains("bbr")
}
