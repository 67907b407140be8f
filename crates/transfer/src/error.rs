//! Errors of transfers.

use crate::text::printable;
use dumbbell_udt::io::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Error of a transfer.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Connection error. A retry resumes the transfer.
    #[error("{0}")]
    Connection(#[from] Error),
    /// As `Connection`, with the address of the server, as it was given.
    #[error("{address}: {error}")]
    At {
        /// Host and port.
        address: String,
        /// Cause.
        error: Error,
    },
    /// The peer refuses; the text is its reason.
    #[error("the peer refuses: {}", printable(.0))]
    Refused(String),
    /// This side refuses a request of the peer; the text is the reason, which the peer gets.
    #[error("refused: {}", printable(.0))]
    Declined(String),
    /// The peer is still processing an earlier attempt.
    #[error("the peer is busy: {}", printable(.0))]
    Busy(String),
    /// A local file cannot be read or written.
    #[error("{}: {error}", printable(&path.to_string_lossy()))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// A path cannot be transferred.
    #[error("{}: {why}", printable(&path.to_string_lossy()))]
    Path {
        /// The path.
        path: PathBuf,
        /// Cause.
        why: &'static str,
    },
    /// The folder of the server, into which files are to be sent, is not valid.
    #[error(
        "into: {0:?} is no path in the server's folder; name a folder relative to it, such as photos/2026"
    )]
    Into(String),
    /// These files failed the integrity check, or changed during the transfer.
    #[error("{} did not arrive intact: {}", of_files(.0.len()), FileNames::of(.0).listed())]
    Damaged(Vec<String>),
    /// The receiver has files of these names with another size or time, and keeps them.
    #[error("not replaced, though size or time differ: {}", .0.listed())]
    Exists(FileNames),
    /// The peer ended the transfer without these paths, which were requested.
    #[error("the peer did not send {}", FileNames::of(.0).listed())]
    Missing(Vec<String>),
    /// A limit of the receiver; the text says which.
    #[error("{0}")]
    Limit(String),
    /// The server would be open to every host that reaches this address.
    #[error(
        "{0}: without a key, every host that reaches this address could use the folder; give a key, \
         listen at a loopback address, or allow it (insecure)"
    )]
    Insecure(SocketAddr),
    /// The peer violates the protocol.
    #[error("the peer violates the protocol: {}", printable(.0))]
    Protocol(String),
    /// The transfer was stopped by [`TransferMonitor::stop`](crate::TransferMonitor::stop).
    #[error("the transfer was stopped")]
    Stopped,
}

fn of_files(number: usize) -> String {
    if number == 1 { "1 file".to_owned() } else { format!("{number} files") }
}

/// Names of any number of files, of which those that fit a line are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNames {
    /// The first names, with control characters escaped.
    pub first: Vec<String>,
    /// Number of all files.
    pub count: usize,
}

impl FileNames {
    fn of(names: &[String]) -> FileNames {
        let mut of = FileNames::default();
        names.iter().for_each(|name| of.push(name));
        of
    }

    /// Adds a file.
    pub(crate) fn push(&mut self, name: &str) {
        const SHOWN: usize = 10;
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(printable(name));
        }
    }

    fn listed(&self) -> String {
        match self.count - self.first.len() {
            0 => self.first.join(", "),
            more => format!("{}, {more} more", self.first.join(", ")),
        }
    }
}

impl TransferError {
    /// Adds the address of the server to a connection error.
    pub(crate) fn at(self, address: &str) -> TransferError {
        match self {
            TransferError::Connection(error) => {
                TransferError::At { address: address.to_owned(), error }
            }
            other => other,
        }
    }

    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            TransferError::Connection(error) | TransferError::At { error, .. } => matches!(
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
        use TransferError::{File, Limit, Missing, Path, Protocol};
        matches!(self, File { .. } | Path { .. } | Missing(_) | Limit(_) | Protocol(_))
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
