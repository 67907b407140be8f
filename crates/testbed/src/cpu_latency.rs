//! Disables deep idle states of the processors during a run.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// A CPU latency request of 0 us: until it is dropped, idle processors poll instead of entering an
/// idle state (Linux, Documentation/power/pm_qos_interface.rst).
///
/// Leaving an idle state takes up to 100 us. On a virtual machine it takes as long as the
/// hypervisor runs other guests, because an idle virtual processor yields its core.
pub(crate) struct CpuLatencyLock(
    #[expect(dead_code, reason = "what counts is that it is open")] File,
);

impl CpuLatencyLock {
    /// `None` if `/dev/cpu_dma_latency` does not exist or cannot be opened.
    pub(crate) fn acquire() -> Option<CpuLatencyLock> {
        let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(CpuLatencyLock(file))
    }
}
