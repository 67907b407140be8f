//! Keeps huge pages away during a run.

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

/// Until it is dropped, new memory of this process is in pages of 4 kB (prctl(2), PR_SET_THP_DISABLE).
///
/// Memory is cleared when it is first used. For a huge page this takes up to 5 ms on a virtual machine
/// whose host has yet to find it, and all packets of the emulator wait meanwhile.
pub(crate) struct SmallPages(());

impl SmallPages {
    /// `None` if they are disabled anyway, or cannot be.
    pub(crate) fn acquire() -> Option<SmallPages> {
        let are_enabled = transparent_huge_pages_are_disabled() == Ok(false);
        let disabled = are_enabled && disable_transparent_huge_pages(true).is_ok();
        disabled.then_some(SmallPages(()))
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        let _ = disable_transparent_huge_pages(false);
    }
}
