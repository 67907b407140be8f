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
        self.sum(self.received.load(Ordering::Relaxed), bytes).ok_or_else(|| self.too_many())?;
        self.check_free(folder, bytes)
    }

    /// `received` and `bytes`; `None` if that is more than is accepted.
    fn sum(&self, received: u64, bytes: u64) -> Option<u64> {
        Some(received.saturating_add(bytes)).filter(|&sum| sum <= self.limits.max_bytes)
    }

    fn too_many(&self) -> TransferError {
        let most = self.limits.max_bytes;
        TransferError::Limit(format!("it takes no more than {most} bytes in all (max-bytes)"))
    }

    fn check_free(&self, folder: &Path, bytes: u64) -> Result<(), TransferError> {
        let keep_free = self.limits.keep_free;
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
        self.check_free(folder, bytes)?;
        // In one step, or else clients at the same time could exceed the limit together.
        let add = |received| self.sum(received, bytes);
        let added = self.received.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.map(drop).map_err(|_| self.too_many())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn clients_at_the_same_time_do_not_exceed_max_bytes_together() {
        const CLIENTS: usize = 4;
        // Looking at the file system takes time in which another client may take what is left.
        let limits = ReceiveLimits { max_bytes: 1, keep_free: 1, ..ReceiveLimits::default() };
        let quotas: Vec<Quota> = (0..20_000).map(|_| Quota::new(limits)).collect();
        let together = Barrier::new(CLIENTS);
        let take_all = || {
            for quota in &quotas {
                together.wait();
                drop(quota.take(Path::new("/"), 1));
            }
        };
        thread::scope(|scope| (0..CLIENTS).for_each(|_| drop(scope.spawn(take_all))));
        let exceeded = quotas.iter().filter(|quota| quota.received.load(Ordering::Relaxed) > 1);
        assert_eq!(exceeded.count(), 0);
    }
}
