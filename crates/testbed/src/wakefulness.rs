//! Keeping the processors from sleeping.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// While it lives no processor sleeps deeper than the kernel's own polling loop, from which work
/// that comes up begins at once (Linux, Documentation/power/pm_qos_interface.rst).
///
/// To wake a processor takes up to a tenth of a millisecond, and on a virtual machine as long as its
/// host has other things to do: it is the host that a sleeping processor is given back to.
pub(crate) struct Wakefulness(#[expect(dead_code, reason = "what counts is that it is open")] File);

impl Wakefulness {
    /// `None` if this process may not ask for that, or the kernel does not know it.
    pub(crate) fn begin() -> Option<Wakefulness> {
        let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Wakefulness(file))
    }
}
