//! Limits of what a receiver accepts.

use crate::error::{TransferError, WithPath};
use rustix::fs::statvfs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that each new file and folder counts as, at least.
pub(crate) const ENTRY_BYTES: u64 = 4096;

/// What a receiver of files accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Maximum bytes of data, of all clients of a server together; those that were received in
    /// vain count too. Each new file and folder counts as at least 4096 bytes.
    pub max_bytes: u64,
    /// Bytes of the file system that stay free.
    pub keep_free: u64,
    /// Whether existing files with another size or time are replaced.
    pub overwrite: bool,
}

impl Default for ReceiveLimits {
    /// No limits.
    fn default() -> ReceiveLimits {
        ReceiveLimits { max_bytes: u64::MAX, keep_free: 0, overwrite: true }
    }
}

/// Enforces limits for the clients of a server together.
#[derive(Debug)]
pub(crate) struct Quota {
    limits: ReceiveLimits,
    received: AtomicU64,
}

impl Quota {
    pub(crate) fn new(limits: ReceiveLimits) -> Quota {
        Quota { limits, received: AtomicU64::new(0) }
    }

    pub(crate) fn overwrites(&self) -> bool {
        self.limits.overwrite
    }

    /// Checks that `bytes` more may be written below `folder`.
    pub(crate) fn check(&self, folder: &Path, bytes: u64) -> Result<(), TransferError> {
        let ReceiveLimits { max_bytes, keep_free, .. } = self.limits;
        if self.received.load(Ordering::Relaxed).saturating_add(bytes) > max_bytes {
            let why = format!("it takes no more than {max_bytes} bytes in all (max-bytes)");
            return Err(TransferError::Limit(why));
        }
        if keep_free > 0 {
            let found = statvfs(folder).map_err(std::io::Error::from).with_path(folder)?;
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            if free < bytes.saturating_add(keep_free) {
                let why =
                    format!("{free} bytes are free, of which it keeps {keep_free} (keep-free)");
                return Err(TransferError::Limit(why));
            }
        }
        Ok(())
    }

    /// Counts received bytes, if they may be written below `folder`.
    pub(crate) fn take(&self, folder: &Path, bytes: u64) -> Result<(), TransferError> {
        self.check(folder, bytes)?;
        self.received.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}
