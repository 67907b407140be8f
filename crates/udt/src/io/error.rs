//! What can go wrong on a connection.

use crate::config::OptionError;
use crate::connection::{CloseReason, SendError};
use dumbbell_cc::ConfigError;
use std::io;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is no such algorithm, or it has no such option.
    #[error(transparent)]
    Algorithm(#[from] ConfigError),
    /// An option of the transport is out of range.
    #[error("{}: {}", .0.key, .0)]
    Option(#[from] OptionError),
    /// Nobody answered.
    #[error("there is no answer")]
    ConnectTimeout,
    /// The peer refused the connection.
    #[error("the peer refuses the connection")]
    Refused,
    /// The peer has another key, or none.
    #[error("the peer does not have this key")]
    Key,
    /// The peer has been silent for too long.
    #[error("the peer has fallen silent")]
    IdleTimeout,
    /// The peer closed the connection.
    #[error("the peer has closed the connection")]
    PeerClosed,
    /// This end closed the connection.
    #[error("the connection is closed")]
    Closed,
    /// It takes longer than the timeout that was set.
    #[error("it takes longer than the timeout")]
    TimedOut,
    /// The connection is of the other mode, or the message is too long.
    #[error(transparent)]
    Send(SendError),
    /// The peer's application failed.
    #[error("the peer's application has failed with code {0}")]
    PeerError(u32),
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Error {
        match error {
            SendError::NotOpen => Error::Closed,
            other => Error::Send(other),
        }
    }
}

impl From<CloseReason> for Error {
    fn from(ended: CloseReason) -> Error {
        match ended {
            CloseReason::Closed => Error::Closed,
            CloseReason::PeerClosed => Error::PeerClosed,
            CloseReason::TimedOut => Error::IdleTimeout,
            CloseReason::Refused => Error::Refused,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Io(_) => io::ErrorKind::Other,
            Error::Algorithm(_) | Error::Option(_) | Error::Send(_) => io::ErrorKind::InvalidInput,
            Error::ConnectTimeout | Error::IdleTimeout | Error::TimedOut => io::ErrorKind::TimedOut,
            Error::Refused => io::ErrorKind::ConnectionRefused,
            Error::Key => io::ErrorKind::PermissionDenied,
            Error::PeerClosed | Error::PeerError(_) => io::ErrorKind::ConnectionReset,
            Error::Closed => io::ErrorKind::NotConnected,
        };
        match error {
            Error::Io(error) => error,
            other => io::Error::new(kind, other),
        }
    }
}
