//! Why files were not transferred.

use dumbbell_udt::io::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why files were not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The connection failed, or never was; trying again goes on where it ended.
    #[error("{0}")]
    Connection(#[from] Error),
    /// The other side does not do it.
    #[error("the other side refuses: {0}")]
    Refused(String),
    /// The other side is not done with an earlier attempt.
    #[error("the other side is busy: {0}")]
    Busy(String),
    /// A file of this side cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// The path of a file cannot be told to the other side.
    #[error("{}: {why}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Files that arrived are not what was sent, or changed while they were.
    #[error("{} did not arrive as they are: {}", of_files(.0.len()), .0.join(", "))]
    Damaged(Vec<String>),
    /// The other side does not keep to the protocol.
    #[error("the other side does not keep to the protocol: {0}")]
    Protocol(String),
    /// The program wants no more.
    #[error("it was stopped")]
    Stopped,
}

fn of_files(number: usize) -> String {
    if number == 1 { "1 file".to_owned() } else { format!("{number} files") }
}

impl TransferError {
    /// Whether trying again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            TransferError::Connection(error) => matches!(
                error,
                // Who refuses cannot say why: it may be that too many wait.
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

    /// Whether the reason is of this side, so that the other cannot know it.
    pub(crate) fn is_local(&self) -> bool {
        use TransferError::{File, Path, Protocol};
        matches!(self, File { .. } | Path { .. } | Protocol(_))
    }
}

/// Says which file it was.
pub(crate) trait WithPath<T> {
    fn with_path(self, path: &Path) -> Result<T, TransferError>;
}

impl<T> WithPath<T> for io::Result<T> {
    fn with_path(self, path: &Path) -> Result<T, TransferError> {
        self.map_err(|error| TransferError::File { path: path.to_owned(), error })
    }
}
