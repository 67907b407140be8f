//! What the engine needs of an endpoint beyond its protocol: ports and prefetching.

use dumbbell_net::Endpoint;
use dumbbell_units::Time;

/// An endpoint that the [`Engine`](crate::Engine) can run.
///
/// Each of its ports is connected to the port of the same number at the peer. A multipath
/// connection has one port per subflow; all others have port 0 only and need no method here.
pub trait SimEndpoint: Endpoint {
    /// The number of ports, at least one.
    fn ports(&self) -> u8 {
        1
    }

    /// Processes a packet that arrived at `now` on `port`.
    #[inline]
    fn handle_on_port(&mut self, now: Time, _port: u8, packet: &Self::Packet) {
        self.handle(now, packet);
    }

    /// The port of the packet that [`poll`](Endpoint::poll) returned last.
    #[inline]
    fn outgoing_port(&self) -> u8 {
        0
    }

    /// Prefetches the endpoint's own memory for a packet that arrives soon; see
    /// [`prefetch`](dumbbell_net::prefetch()). Affects speed only.
    #[inline]
    fn prefetch(&self) {}

    /// Prefetches what the endpoint points to. Called later than [`prefetch`](Self::prefetch), as
    /// it reads the pointers.
    #[inline]
    fn prefetch_indirect(&self) {}
}
