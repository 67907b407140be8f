//! Asynchronous sockets: tokio's traits over the driver threads, which wake tasks as they wake blocked
//! threads. They work with any executor.

use super::error::Error;
use super::settings::Settings;
use super::shared::{SharedConnection, Statistics, Wait};
use super::socket::{Socket, try_recv, try_send, wake_threshold};
use crate::config::Mode;
use crate::connection::SendError;
use crate::handshake::Role;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An asynchronous [`Socket`], usable by several tasks at once. Dropping it closes the connection.
pub struct AsyncSocket(Socket);

/// An asynchronous [`Listener`](super::Listener).
pub struct AsyncListener(super::Listener);

impl From<Socket> for AsyncSocket {
    fn from(socket: Socket) -> AsyncSocket {
        AsyncSocket(socket)
    }
}

impl From<super::Listener> for AsyncListener {
    fn from(listener: super::Listener) -> AsyncListener {
        AsyncListener(listener)
    }
}

impl AsyncListener {
    /// Listens at an address; port 0 selects a free port.
    ///
    /// # Errors
    /// As [`Listener::bind`](super::Listener::bind).
    pub fn bind(local: SocketAddr, settings: &Settings) -> Result<AsyncListener, Error> {
        super::Listener::bind(local, settings).map(AsyncListener)
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Accepts the next connection. Several tasks may wait for one.
    pub async fn accept(&self) -> AsyncSocket {
        poll_fn(|context| match self.0.poll_accept(context.waker()) {
            Some(socket) => Poll::Ready(AsyncSocket(socket)),
            None => Poll::Pending,
        })
        .await
    }
}

impl AsyncSocket {
    /// Connects to a listener.
    ///
    /// # Errors
    /// As [`Socket::connect`].
    pub async fn connect(peer: SocketAddr, settings: &Settings) -> Result<AsyncSocket, Error> {
        let local = match peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        AsyncSocket::open(Socket::open(local, peer, Role::Client, settings)?).await
    }

    /// Connects to a peer that connects at the same time.
    ///
    /// # Errors
    /// As [`Socket::rendezvous`].
    pub async fn rendezvous(
        local: SocketAddr,
        peer: SocketAddr,
        settings: &Settings,
    ) -> Result<AsyncSocket, Error> {
        AsyncSocket::open(Socket::open(local, peer, Role::Rendezvous, settings)?).await
    }

    async fn open(socket: Socket) -> Result<AsyncSocket, Error> {
        poll_fn(|context| {
            let mut state = socket.shared.lock();
            match state.error() {
                Some(error) => return Poll::Ready(Err(error)),
                None if state.is_ready() => return Poll::Ready(Ok(())),
                None => SharedConnection::register(&mut state, context.waker(), Wait::Write(1)),
            }
            Poll::Pending
        })
        .await?;
        Ok(AsyncSocket(socket))
    }

    /// The underlying blocking socket, for operations that do not block.
    pub fn get_ref(&self) -> &Socket {
        &self.0
    }

    /// Sends a message without a time to live; see [`Socket::send_message`].
    ///
    /// # Errors
    /// As [`Socket::send_message`].
    pub async fn send_message(&self, bytes: &[u8], in_order: bool) -> Result<(), Error> {
        poll_fn(|context| {
            let shared = &self.0.shared;
            let mut state = shared.lock();
            if let Some(error) = state.error() {
                return Poll::Ready(Err(error));
            }
            let now = shared.now();
            match state.engine.send_message(now, bytes, None, in_order) {
                Err(SendError::Full) => {
                    SharedConnection::register(
                        &mut state,
                        context.waker(),
                        Wait::Write(bytes.len()),
                    );
                    Poll::Pending
                }
                other => {
                    shared.notify_driver(&state);
                    Poll::Ready(other.map_err(Error::from))
                }
            }
        })
        .await
    }

    /// Receives the next message; `None` if the peer has closed the connection.
    ///
    /// # Errors
    /// As [`Socket::recv_message`].
    pub async fn recv_message(&self) -> Result<Option<Vec<u8>>, Error> {
        poll_fn(|context| {
            let shared = &self.0.shared;
            let mut state = shared.lock();
            state.engine.check_mode(Mode::Message)?;
            if let Some(message) = state.engine.read_message() {
                shared.notify_driver(&state);
                return Poll::Ready(Ok(Some(message)));
            }
            match state.error() {
                Some(Error::PeerClosed) => Poll::Ready(Ok(None)),
                Some(error) => Poll::Ready(Err(error)),
                None => {
                    SharedConnection::register(&mut state, context.waker(), Wait::Read);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Counters and current values.
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

impl AsyncRead for AsyncSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut state = self.0.shared.lock();
        match try_recv(&self.0.shared, &mut state, buffer.initialize_unfilled())? {
            Some(read) => buffer.advance(read),
            None => {
                SharedConnection::register(&mut state, context.waker(), Wait::Read);
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AsyncSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut state = self.0.shared.lock();
        match try_send(&self.0.shared, &mut state, bytes)? {
            Some(sent) => Poll::Ready(Ok(sent)),
            None => {
                let wanted = wake_threshold(&state, bytes.len());
                SharedConnection::register(&mut state, context.waker(), Wait::Write(wanted));
                Poll::Pending
            }
        }
    }

    /// Does nothing: written data is sent in any case.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closes the connection; ready when all sent data is acknowledged. Fails if that takes longer than
    /// [`Settings::linger`].
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        shared.start_close(&mut state, shared.linger);
        match state.closed() {
            None => {
                SharedConnection::register(&mut state, context.waker(), Wait::Close);
                Poll::Pending
            }
            Some(result) => Poll::Ready(Ok(result?)),
        }
    }
}
