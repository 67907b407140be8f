//! Errors of sockets.

use crate::config::OptionError;
use crate::connection::{CloseReason, SendError};
use dumbbell_cc::ConfigError;
use std::io;

/// Error of a socket or listener.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Unknown algorithm, or invalid option of an algorithm.
    #[error(transparent)]
    Algorithm(#[from] ConfigError),
    /// A transport option is out of range.
    #[error("{}: {}", .0.key, .0)]
    Option(#[from] OptionError),
    /// The connect timeout expired.
    #[error("there is no answer")]
    ConnectTimeout,
    /// The peer rejected the connection.
    #[error(
        "the peer refuses the connection: it needs a key, is in the other mode (stream, message), or has \
         too many waiting"
    )]
    Refused,
    /// The peer has a different key or none.
    #[error("the peer refuses the key: it has another one, or none")]
    Key,
    /// The idle timeout expired.
    #[error("the peer has fallen silent")]
    IdleTimeout,
    /// The peer has closed the connection.
    #[error("the peer has closed the connection")]
    PeerClosed,
    /// This end has closed the connection.
    #[error("the connection is closed")]
    Closed,
    /// This end has closed the listener.
    #[error("the listener is closed")]
    ListenerClosed,
    /// The timeout of the operation expired.
    #[error("it takes longer than the timeout")]
    TimedOut,
    /// Closing gave up data that was not acknowledged within the linger time.
    #[error("sent data was not acknowledged within the linger time")]
    LingerTimeout,
    /// Wrong mode, or a message that exceeds the send buffer.
    #[error(transparent)]
    Send(SendError),
    /// The interface to the peer carries no full packet of this size, headers included, bytes.
    #[error("the interface to the peer carries no packets of {0} bytes; choose a smaller mss")]
    PacketTooLong(u32),
    /// The peer's application reported this error code.
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
            CloseReason::KeyRefused => Error::Key,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Io(_) => io::ErrorKind::Other,
            Error::Algorithm(_) | Error::Option(_) | Error::Send(_) | Error::PacketTooLong(_) => {
                io::ErrorKind::InvalidInput
            }
            Error::ConnectTimeout | Error::IdleTimeout | Error::TimedOut | Error::LingerTimeout => {
                io::ErrorKind::TimedOut
            }
            Error::Refused => io::ErrorKind::ConnectionRefused,
            Error::Key => io::ErrorKind::PermissionDenied,
            Error::PeerClosed | Error::PeerError(_) => io::ErrorKind::ConnectionReset,
            Error::Closed | Error::ListenerClosed => io::ErrorKind::NotConnected,
        };
        match error {
            Error::Io(error) => error,
            other => io::Error::new(kind, other),
        }
    }
}
