//! Errors of transfers.

use dumbbell_udt::io::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Error of a transfer.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Connection error. A retry resumes the transfer.
    #[error("{0}")]
    Connection(#[from] Error),
    /// The peer refuses; the text is its reason.
    #[error("the peer refuses: {0}")]
    Refused(String),
    /// The peer is still processing an earlier attempt.
    #[error("the peer is busy: {0}")]
    Busy(String),
    /// A local file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// A path cannot be transferred.
    #[error("{}: {why}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Cause.
        why: &'static str,
    },
    /// These files failed the integrity check, or changed during the transfer.
    #[error("{} did not arrive as they are: {}", of_files(.0.len()), .0.join(", "))]
    Damaged(Vec<String>),
    /// The peer violates the protocol.
    #[error("the peer violates the protocol: {0}")]
    Protocol(String),
    /// The transfer was stopped by [`TransferMonitor::stop`](crate::TransferMonitor::stop).
    #[error("the transfer was stopped")]
    Stopped,
}

fn of_files(number: usize) -> String {
    if number == 1 { "1 file".to_owned() } else { format!("{number} files") }
}

impl TransferError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            TransferError::Connection(error) => matches!(
                error,
                // A UDT rejection has no reason; the backlog may be full.
                Error::Refused
                    | Error::ConnectTimeout
                    | Error::IdleTimeout
                    | Error::PeerClosed
                    | Error::Closed
                    | Error::TimedOut
            ),
            TransferError::Busy(_) => true,
            _ => false,
        }
    }

    /// Whether the cause is local, so that the peer must be notified.
    pub(crate) fn is_local(&self) -> bool {
        use TransferError::{File, Path, Protocol};
        matches!(self, File { .. } | Path { .. } | Protocol(_))
    }
}

/// Adds the path of a file to its error.
pub(crate) trait WithPath<T> {
    fn with_path(self, path: &Path) -> Result<T, TransferError>;
}

impl<T> WithPath<T> for io::Result<T> {
    fn with_path(self, path: &Path) -> Result<T, TransferError> {
        self.map_err(|error| TransferError::File { path: path.to_owned(), error })
    }
}
