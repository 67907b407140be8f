//! The example transport drives every algorithm.

#[allow(dead_code, reason = "main is the example's")]
#[path = "../examples/transport.rs"]
mod transport;

use dumbbell_cc::NAMES;
use dumbbell_units::{Span, Time};
use transport::Transport;

/// The link carries 2083 packets per second. UDT's algorithms need the reports of UDT receivers.
#[test]
fn the_example_fills_the_link_with_every_algorithm_but_udts() {
    for name in NAMES.iter().filter(|name| !name.contains("udt")) {
        let mut transport = Transport::new(name).expect("a built-in algorithm");
        while transport.path.now < Time::ZERO + Span::from_secs(30) {
            transport.step();
        }
        let delivered = transport.path.delivered;
        assert!(delivered > 30 * 2083 * 8 / 10, "{name}: {delivered} packets");
    }
}
